--- Names: list queues or dicts by name, page by page.
--
-- KEYS  1 the store
-- ARGV  1 the command: kind, from (a bound of ZRANGEBYLEX), prefix, limit, exact
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers settings, each {name, paused, maxsize, size, created_at, policy, live, tat, last, throttled_until}, and whether the limit cut them off.
-- @include queue
-- @include dict

local names = {}

function names.check(command)
  local upto = command.exact and "[" .. command.prefix or "(" .. command.prefix .. AFTER_ALL
  local found = call("ZRANGEBYLEX", store .. ":" .. command.kind .. "s", command.from, upto, "LIMIT", 0, command.limit + 1)
  local more = #found > command.limit
  local listed = {}
  for i = 1, math.min(#found, command.limit) do
    local object = command.kind == "queue" and open_queue(found[i]) or open_dict(found[i])
    local settings = settings_of(object)
    listed[i] = {
      name = found[i],
      paused = settings.paused,
      maxsize = settings.maxsize,
      size = settings.maxsize and ready_count(object) or 0,
      created_at = settings.created_at,
      policy = settings.policy,
      live = settings.live,
      tat = settings.tat,
      last = settings.last,
      throttled_until = settings.throttled_until,
    }
  end
  return { settings = listed, more = more }
end

function names.write(_, plan)
  return plan
end

commands.Names = names
