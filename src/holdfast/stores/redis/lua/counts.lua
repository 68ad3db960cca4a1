--- Counts: sizes, ages and holders of queues by name, page by page.
--
-- KEYS  1 the store
-- ARGV  1 the command: from (a bound of ZRANGEBYLEX), prefix, limit  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers queues, each {name, stats}, and whether the limit cut them off.
-- @include counting

local counts = {}

function counts.check(command)
  local names = call("ZRANGEBYLEX", store .. ":queues", command.from, "(" .. command.prefix .. AFTER_ALL, "LIMIT", 0, command.limit + 1)
  local more, queues = #names > command.limit, {}
  for i = 1, math.min(#names, command.limit) do
    queues[i] = { name = names[i], stats = stats_of(open_queue(names[i])) }
  end
  return { queues = queues, more = more }
end

function counts.write(_, plan)
  return plan
end

commands.Counts = counts
