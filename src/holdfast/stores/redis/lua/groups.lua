--- Groups: list the lanes of a queue by name, page by page.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue, from (a bound of ZRANGEBYLEX), prefix, limit  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers lanes, whether the limit cut them off, and the moment.
-- @include queue

local groups = {}

function groups.check(command)
  local queue = open_queue(command.queue)
  local names = call("ZRANGEBYLEX", queue.key .. ":groups", command.from, "(" .. command.prefix .. AFTER_ALL, "LIMIT", "0", command.limit + 1)
  local more, found = #names > command.limit, load_rules()
  names[command.limit + 1] = nil
  local listed = {}
  for i, name in ipairs(names) do
    local lane = found.lane(queue, name)
    listed[i] = { name = name, turn = lane.turn, place = lane.place, open = lane.open or false, live = lane.live, credit = lane.credit, tat = lane.tat, last = lane.last }
    listed[i].wakes, listed[i].throttled_until = lane.wakes ~= 0 and lane.wakes or nil, lane.throttled_until
    listed[i].own = next(lane.own) and lane.own or nil
  end
  return { lanes = listed, more = more, now = now }
end

function groups.write(_, plan)
  return plan
end

commands.Groups = groups
