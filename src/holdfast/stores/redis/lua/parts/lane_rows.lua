--- Queues with policies, changed by the full rules: which lane a message stands in, what the end of a claim gives back, and what becomes of
-- lanes. Made only where a step meets such a queue.
-- @include lanes

rules.lanes = lanes

function rules.lane(queue, name)
  local lane = queue.lanes[name]
  if not lane then
    lane = lanes.read(name, call("HGET", queue.key .. ":lane", name))
    queue.lanes[name] = lane
  end
  return lane
end

--- Let a lane be refreshed when the step is written; so many messages joined its line. One that is open `stays_open` where the step did no
-- more than add messages that are due.
function rules.touch(queue, name, arrivals, stays_open)
  queue.touched[name] = (queue.touched[name] or 0) + arrivals
  queue.may_close[name] = queue.may_close[name] or not stays_open
end

--- Where a message that is ready stands; one that is not due is out of line, but in a strict group each keeps its place.
function rules.line_up(queue, message)
  local policy = policy_of(queue)
  local lane = policy.groups and message.group or ""
  if policy.groups == "strict" and message.lane == lane and message.rank then
    return
  end
  message.lane, message.level, message.rank = lane, nil, nil
  if message.position <= now then
    local level, rank = lanes.place_of(policy, message, message.position)
    message.level, message.rank = level ~= 0 and level or nil, rank
  end
end

--- Give back what a claim that ends has used of limits.
function rules.untie(queue, message)
  local tied, settings = message.tied, settings_of(queue)
  message.tied = nil
  if bit.band(tied, {{SLOT_OF_GROUP}}) > 0 and message.lane then
    local lane = rules.lane(queue, message.lane)
    lane.live = math.max(lane.live - 1, 0)
    rules.touch(queue, message.lane, 0)
  end
  if bit.band(tied, {{SLOT_OF_QUEUE}}) > 0 and settings then
    local limit = settings.policy and settings.policy.limit
    if limit and settings.live == limit then
      wake(queue.topic, 1)
    end
    settings.live = math.max(settings.live - 1, 0)
    queue.has_new_gate = true
  end
end

--- The members of a lane's line behind another one, up to a limit.
function rules.line_members(queue, name, behind, limit)
  return call("ZRANGEBYLEX", queue.key .. ":lanes", behind and "(" .. behind or "[" .. name .. "\0", "(" .. name .. "\1", "LIMIT", "0", limit)
end

--- The first message of a lane that is not too late to be started, as Redis has it.
function rules.head_of_lane(queue, name)
  local member
  repeat
    member = rules.line_members(queue, name, member, 1)[1]
    local message = member and pick(queue, { string.sub(member, #name + rules.ID_AT) })[1]
    if message and not is_late(message) then
      return message
    end
  until not member
  return nil
end

rules.ID_AT = 23 -- where the id is behind the name of the lane in a member of Q:lanes

--- Refresh a lane and write it; wake who may find something in it.
function rules.refresh(queue, name, number, arrivals)
  local lane, head = rules.lane(queue, name), policy_of(queue).groups and rules.head_of_lane(queue, name)
  local was_open, wakes_before = lane.was.open_at, lane.was.wakes or 0
  lanes.refresh(lane, policy_of(queue), head and head.position, number)
  if lane.open and (arrivals > 0 or not was_open) then
    wake(queue.topic, math.max(1, arrivals))
  elseif lane.wakes ~= 0 and head and (wakes_before == 0 or lane.wakes < wakes_before) then
    wake(queue.topic, 1)
  end
  lanes.save(queue.key, { lane })
end

--- Bring the lanes that the step has touched up to date, once their messages are written.
function rules.write_lanes(queue, number)
  local touched, may_close, names = queue.touched, queue.may_close, {}
  for name in pairs(touched) do
    names[#names + 1] = name
  end
  table.sort(names)
  queue.touched, queue.may_close = {}, {}
  for _, name in ipairs(policy_of(queue).groups and names or {}) do
    if rules.lane(queue, name).open and not may_close[name] then
      wake(queue.topic, touched[name])
      lanes.save(queue.key, { rules.lane(queue, name) })
    else
      rules.refresh(queue, name, number or numbers.latest(), touched[name])
    end
  end
end

--- Write what became of a queue's limit, rate and throttle.
function rules.write_gate(queue)
  local settings = settings_of(queue)
  if settings and queue.has_new_gate then
    local gate = {}
    for _, name in ipairs({ "live", "tat", "last", "throttled_until" }) do
      gate[#gate + 1], gate[#gate + 2] = name, text(settings[name])
    end
    call("HSET", queue.key, unpack(gate))
  end
  queue.has_new_gate = false
end

local PRUNED = 2 -- so many messages that were kept long enough go with each settlement

--- Keep messages that are done for a while, as they were claimed; their keys are free.
function rules.keep_done(queue, messages, trace)
  for _, message in ipairs(messages) do
    change_state(queue, message, "done")
    message.ended_at, message.trace = now, trace or message.trace
  end
  rules.prune_done(queue, PRUNED, messages)
end

local function ended_before(one, other)
  return one.ended_at < other.ended_at or (one.ended_at == other.ended_at and one.n < other.n)
end

--- Remove up to `limit` messages that were kept long enough; answer how many. `ended` are done by this very step: they go where nothing is
-- to be kept any more.
function rules.prune_done(queue, limit, ended)
  local kept_s = policy_of(queue).keep_done_s
  local upto = "(" .. sortable(now - (kept_s and micros(kept_s) or 0) + 1)
  local members = call("ZRANGEBYLEX", queue.key .. ":done", "-", upto, "LIMIT", "0", limit)
  local ids = {}
  for i, member in ipairs(members) do
    ids[i] = id_in("done", member)
  end
  local old = pick(queue, ids)
  for _, message in ipairs(not kept_s and ended or {}) do
    old[#old + 1] = message
  end
  table.sort(old, ended_before)
  for i = #old, limit + 1, -1 do
    old[i] = nil
  end
  remove(queue, old)
  return #old
end

--- Give back what claims have used of rates, where nothing was claimed under them since.
function rules.give_back(queue, messages)
  local settings, policy = settings_of(queue), policy_of(queue)
  for _, message in ipairs(messages) do
    if policy.rate and settings.last == message.token then
      settings.tat = settings.tat - lanes.interval_of(policy.rate)
      queue.has_new_gate = true
    end
    local lane = policy.groups and message.lane and rules.lane(queue, message.lane)
    local rate = lane and lanes.rate_of(lane, policy)
    if rate and lane.last == message.token then
      lane.tat = lane.tat - lanes.interval_of(rate)
      rules.touch(queue, message.lane, 0, true)
    end
  end
end

--- Every lane of a queue, as far as there are.
function rules.all_lanes(queue)
  local found = {}
  for _, name in ipairs(call("ZRANGE", queue.key .. ":groups", "0", "-1")) do
    found[#found + 1] = rules.lane(queue, name)
  end
  return found
end

--- Let no message be in line or claimed; where nothing is to stay, own settings go, too.
function rules.empty_lanes(queue, drop)
  local settings = settings_of(queue)
  settings.live, queue.has_new_gate = 0, true
  for _, lane in ipairs(rules.all_lanes(queue)) do
    lane.live = 0
    if drop then
      lane.own, lane.tat, lane.throttled_until = {}, 0, 0
    end
    lanes.refresh(lane, policy_of(queue), nil, 0)
    lanes.save(queue.key, { lane })
  end
  queue.touched, queue.may_close = {}, {}
end

--- Count a message that is claimed under the limits of its queue.
function rules.count_claim(queue, message)
  local policy, settings, tied = policy_of(queue), settings_of(queue), 0
  if policy.groups == "strict" or (policy.groups and policy.group_limit) then
    tied = {{SLOT_OF_GROUP}}
    local lane = rules.lane(queue, message.lane)
    lane.live = lane.live + 1
    rules.touch(queue, message.lane, 0)
  end
  if policy.limit then
    tied = tied + {{SLOT_OF_QUEUE}}
    settings.live, queue.has_new_gate = settings.live + 1, true
  end
  tied = tied + (policy.keep_done_s and {{KEPT_WHEN_DONE}} or 0)
  message.tied = tied > 0 and tied or nil
end
