--- Groups: list the lanes of a queue by name, page by page.
--
-- KEYS  1 the store  2 the queue
-- ARGV  1 the command: queue, from (a bound of ZRANGEBYLEX), prefix, limit, exact  2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers lanes, whether the limit cut them off, and the moment; with exact also head and ahead.
-- @include queue

local groups = {}

local function shown(lane)
  local one = { name = lane.name, turn = lane.turn, place = lane.place, open = lane.open or false, live = lane.live, credit = lane.credit, tat = lane.tat, last = lane.last }
  one.wakes, one.throttled_until = lane.wakes ~= 0 and lane.wakes or nil, lane.throttled_until
  one.own = next(lane.own) and lane.own or nil
  return one
end

--- One lane, its first message in line, and how many are served before it.
local function answer_one(queue, lane)
  local packed = lane.was.packed
  if not packed then
    return { lanes = {}, more = false, now = now, ahead = 0 }
  end
  local head = rules.head_of_lane(queue, lane.name)
  local ahead = call("ZLEXCOUNT", queue.key .. ":open", "-", "(" .. string.sub(packed, 1, 12) .. lane.name)
  return { lanes = { shown(lane) }, more = false, now = now, head = head and head.id, ahead = math.min(ahead, {{LANES_COUNTED}}) }
end

function groups.check(command)
  local queue, found = open_queue(command.queue), load_rules()
  if command.exact then
    return answer_one(queue, found.lane(queue, command.prefix))
  end
  local names = call("ZRANGEBYLEX", queue.key .. ":groups", command.from, "(" .. command.prefix .. AFTER_ALL, "LIMIT", "0", command.limit + 1)
  local more, listed = #names > command.limit, {}
  names[command.limit + 1] = nil
  for i, name in ipairs(names) do
    listed[i] = shown(found.lane(queue, name))
  end
  return { lanes = listed, more = more, now = now, ahead = 0 }
end

function groups.write(_, plan)
  return plan
end

commands.Groups = groups
