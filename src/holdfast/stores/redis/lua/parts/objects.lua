--- Queues and dicts as a whole: whether they exist, and their settings.
-- @include log
-- @include micros

--- An object of this step. `keep` makes what a step needs to know of it.
local function open(opened, kind, name, make)
  local object = opened[name]
  if not object then
    object = make()
    object.kind, object.name, object.topic, object.key = kind, name, kind .. ":" .. name, key_of(kind, name)
    opened[name] = object
  end
  return object
end

--- The settings of a queue or dict, nil where it does not exist.
--
-- `policy` has the policies of a queue, and live, tat, last and throttled_until what its limit, rate and throttle have come to: see
-- lanes.lua. Where a claim must look at them the queue is `ruled`: "lanes" where messages stand in lanes, else "gate". A release that knows
-- nothing of that finds it paused; `stopped` says whether it is.
local function settings_of(object)
  if object.settings == nil then
    local found = call("HMGET", object.key, "created_at", "paused", "maxsize", "ruled", "stopped", "policy", "live", "tat", "last", "throttled_until")
    object.settings = found[1]
      and {
        created_at = tonumber(found[1]),
        paused = (found[4] and found[5] or found[2]) == "1",
        maxsize = tonumber(found[3] or nil),
        ruled = found[4] or nil,
        policy = found[6] and cmsgpack.unpack(found[6]) or nil,
        live = tonumber(found[7] or 0),
        tat = tonumber(found[8] or 0),
        last = tonumber(found[9] or 0),
        throttled_until = tonumber(found[10] or 0),
      }
  end
  return object.settings or nil
end

--- Create a queue or dict, as the first write to it does.
local function create(object)
  if not settings_of(object) then
    object.settings = { created_at = now, paused = false, live = 0, tat = 0, last = 0, throttled_until = 0 }
    object.is_configured = true
    keep_log(object)
  end
end

--- Remove it from the list of names; its log stays as long as events are kept, so that watchers learn of it.
local function drop(object)
  object.settings, object.is_configured = false, true
end

--- Whether a claim must look at more than the line: "lanes", "gate" or nil.
local function ruled_by(settings)
  local policy = settings.policy or {}
  if policy.groups or policy.order == "lifo" or policy.aging_s then
    return "lanes"
  end
  return (policy.limit or policy.rate or policy.keep_done_s or settings.throttled_until > 0) and "gate" or nil
end

--- Write the settings of an object where the step changed them.
local function write_settings(object)
  if not object.is_configured then
    return
  end
  local names = store .. ":" .. object.kind .. "s"
  object.is_configured = false
  call("DEL", object.key)
  if not object.settings then
    call("ZREM", names, object.name)
    call("EXPIRE", object.key .. ":events", RETAINED_S)
    call("EXPIRE", object.key .. ":floor", RETAINED_S)
    return
  end
  local settings = object.settings
  local ruled = ruled_by(settings)
  settings.ruled = ruled
  local fields = { "created_at", text(settings.created_at), "paused", (settings.paused or ruled) and "1" or "0" }
  local function keep(name, content)
    if content then
      fields[#fields + 1], fields[#fields + 2] = name, content
    end
  end
  keep("maxsize", settings.maxsize and text(settings.maxsize))
  keep("ruled", ruled)
  keep("stopped", ruled and (settings.paused and "1" or "0"))
  keep("policy", settings.policy and cmsgpack.pack(settings.policy))
  keep("lease", settings.policy and settings.policy.lease_s and text(micros(settings.policy.lease_s)))
  for _, name in ipairs({ "live", "tat", "last", "throttled_until" }) do
    keep(name, settings[name] ~= 0 and text(settings[name]))
  end
  call("HSET", object.key, unpack(fields))
  call("ZADD", names, 0, object.name)
  call("PERSIST", object.key .. ":events")
  call("PERSIST", object.key .. ":floor")
end
