--- The settings of queues and dicts in answers.
-- @include queue

local function shown_settings(object)
  local found = settings_of(object) or { paused = false, created_at = now, live = 0, tat = 0, last = 0, throttled_until = 0 }
  return {
    name = object.name,
    paused = found.paused,
    maxsize = found.maxsize,
    size = found.maxsize and ready_count(object) or 0,
    created_at = found.created_at,
    policy = found.policy,
    live = found.live,
    tat = found.tat,
    last = found.last,
    throttled_until = found.throttled_until,
  }
end
