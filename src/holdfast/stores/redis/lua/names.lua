--- Names: list queues or dicts by name, page by page.
--
-- KEYS  1 the store
-- ARGV  1 the command: kind, from (a bound of ZRANGEBYLEX), prefix, limit, exact
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers settings, each {name, paused, maxsize, size, created_at, policy, live, tat, last, throttled_until}, and whether the limit cut them off.
-- @include settings
-- @include dict

local names = {}

function names.check(command)
  local upto = command.exact and "[" .. command.prefix or "(" .. command.prefix .. AFTER_ALL
  local found = call("ZRANGEBYLEX", store .. ":" .. command.kind .. "s", command.from, upto, "LIMIT", 0, command.limit + 1)
  local more = #found > command.limit
  local listed = {}
  for i = 1, math.min(#found, command.limit) do
    listed[i] = shown_settings(command.kind == "queue" and open_queue(found[i]) or open_dict(found[i]))
  end
  return { settings = listed, more = more }
end

function names.write(_, plan)
  return plan
end

commands.Names = names
