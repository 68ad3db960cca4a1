--- Configure: create a queue or a dict, or change its settings or those of one group; what is not given stays.
--
-- KEYS  1 the store  2 the queue or dict
-- ARGV  1 the command: kind, name and, where they are to change, paused, maxsize (false: no limit), policies (by name; false: none), throttle;
--         group, and then own (limit, rate: false for none; weight, paused), throttle, forget
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers paused, maxsize, size, created_at, policy, live, tat, last and throttled_until.
-- @include settings
-- @include dict

local configure = {}

local MANY = 10000 -- so many messages at most are lined up anew, or counted, in one step
local DEFAULTS = { group_dead = "pass", order = "fifo", late_to = "drop" }

local function open_object(command)
  return command.kind == "queue" and open_queue(command.name) or open_dict(command.name)
end

--- The policies after a change, nil where none is left.
local function changed_policy(before, changes)
  local policy = {}
  for name, content in pairs(before or {}) do
    policy[name] = content
  end
  for name, content in pairs(changes or {}) do
    policy[name] = content ~= false and content ~= DEFAULTS[name] and content or nil
  end
  return next(policy) and policy or nil
end

--- Whether messages stand elsewhere under other policies.
local function is_other_line(one, other)
  return (one.groups ~= nil) ~= (other.groups ~= nil) or one.order ~= other.order or one.aging_s ~= other.aging_s
end

local function count_of(queue, orders)
  local count = 0
  for _, order in ipairs(orders) do
    count = count + call("ZCARD", queue.key .. ":" .. order)
  end
  return count
end

local function refuse_many(queue, orders, what)
  local count = count_of(queue, orders)
  if count > MANY then
    refuse("TooManyMessages", { queue = queue.name, count = count, most = MANY, what = what })
  end
end

local function limits_groups(policy)
  return policy.groups == "strict" or (policy.groups and policy.group_limit)
end

local function check_policy(command, plan)
  local policy, was = plan.after.policy or {}, plan.before and plan.before.policy or {}
  if policy.groups == "strict" and (policy.order == "lifo" or policy.aging_s or policy.group_limit) then
    local other = policy.order == "lifo" and "order='lifo'" or policy.aging_s and "aging_s" or "group_limit, which is 1 there"
    refuse("PoliciesClash", { queue = command.name, one = "groups='strict'", other = other })
  end
  local queue = open_queue(command.name)
  plan.has_other_line = is_other_line(was, policy)
  plan.is_counted = plan.has_other_line or (limits_groups(policy) and not limits_groups(was)) or (policy.limit and not was.limit)
  if plan.has_other_line then
    refuse_many(queue, { "ready", "leased", "buffered" }, "messages")
  elseif plan.is_counted then
    refuse_many(queue, { "leased" }, "claimed messages")
  end
end

--- Whether two tables, or what else they are, have the same contents.
local function is_equal(one, other)
  if type(one) ~= "table" or type(other) ~= "table" then
    return one == other
  end
  for name, content in pairs(one) do
    if not is_equal(content, other[name]) then
      return false
    end
  end
  for name in pairs(other) do
    if one[name] == nil then
      return false
    end
  end
  return true
end

local function check_whole(command)
  local before = settings_of(open_object(command))
  local after = { created_at = now, paused = false, live = 0, tat = 0, last = 0, throttled_until = 0 }
  for name, content in pairs(before or {}) do
    after[name] = content
  end
  if command.paused ~= nil then
    after.paused = command.paused
  end
  if command.maxsize ~= nil then
    after.maxsize = command.maxsize or nil
  end
  if command.throttle then
    after.throttled_until = command.throttle > 0 and now + command.throttle or 0
  end
  if command.policies then
    after.policy = changed_policy(before and before.policy, command.policies)
  end
  local plan = { before = before, after = after, is_same = before and is_equal(before, after) }
  after.ruled = ruled_by(after)
  if command.policies then
    check_policy(command, plan)
  end
  return plan
end

local function check_group(command)
  local queue = open_queue(command.name)
  local policy = policy_of(queue)
  if command.own.limit and policy.groups == "strict" then
    local other = "a limit of group '" .. command.group .. "', which is 1 there"
    refuse("PoliciesClash", { queue = command.name, one = "groups='strict'", other = other })
  end
  local lane = load_rules().lane(queue, command.group)
  local is_counted = policy.groups and command.own.limit and not rules.lanes.limit_of(lane, policy)
  if is_counted then
    refuse_many(queue, { "leased" }, "claimed messages")
  end
  return { is_counted = is_counted }
end

function configure.check(command)
  return command.group and check_group(command) or check_whole(command)
end

--- Visit the messages in some orders of a queue.
local function each_message(queue, orders, visit)
  for _, order in ipairs(orders) do
    local ids = call("ZRANGE", queue.key .. ":" .. order, "0", "-1")
    for i, member in ipairs(ids) do
      ids[i] = id_in(order, member)
    end
    for _, message in ipairs(pick(queue, ids)) do
      touch(queue, message)
      visit(message)
      queue.joins[message] = state_of(message) == "ready" or nil
    end
  end
end

--- Let all messages stand where the new policies say; none counts as claimed in its group.
local function line_up_anew(queue)
  local found, policy = load_rules(), policy_of(queue)
  local has_lanes = queue.settings.ruled == "lanes"
  each_message(queue, { "ready", "leased", "buffered" }, function(message)
    message.lane, message.level, message.rank = nil, nil, nil
    if message.state == "buffered" and has_lanes then
      message.lane = policy.groups and message.group or ""
    elseif has_lanes then
      found.line_up(queue, message)
    end
    local tied = (message.tied or 0) - bit.band(message.tied or 0, {{SLOT_OF_GROUP}})
    message.tied = tied > 0 and tied or nil
  end)
  for _, lane in ipairs(found.all_lanes(queue)) do
    lane.live, lane.turn, lane.place = 0, 0, 0
    if policy.groups then
      found.touch(queue, lane.name, 0)
    else
      found.lanes.refresh(lane, policy, nil, 0)
      found.lanes.save(queue.key, { lane })
    end
  end
end

--- Count all that is claimed, or what is of one lane, under the limits as they are now.
local function count_claims(queue, only)
  local found, policy, live, all = load_rules(), policy_of(queue), {}, 0
  each_message(queue, { "leased" }, function(message)
    local lane = policy.groups and message.lane and (not only or only == message.lane) and found.lane(queue, message.lane)
    local limited = lane and found.lanes.limit_of(lane, policy)
    if limited then
      live[lane] = (live[lane] or 0) + 1
    end
    if lane then
      found.touch(queue, lane.name, 0)
    end
    all = all + 1
    local tied = bit.bor(message.tied or 0, limited and {{SLOT_OF_GROUP}} or 0, policy.limit and {{SLOT_OF_QUEUE}} or 0)
    message.tied = tied > 0 and tied or nil
  end)
  for lane, count in pairs(live) do
    lane.live = count
  end
  if not only then
    queue.settings.live, queue.has_new_gate = policy.limit and all or 0, true
  end
end

local function write_whole(command, plan)
  local object, after = open_object(command), plan.after
  if plan.is_same then
    return
  end
  object.settings, object.is_configured = after, true
  keep_log(object)
  if command.kind ~= "queue" then
    tell(object, "configured", {})
    return
  end
  local data = { paused = after.paused, maxsize = after.maxsize or false, policy = after.policy }
  if not after.policy and plan.before and plan.before.policy then
    data.policy = false
  end
  data.throttle_s = command.throttle and command.throttle / 1000000
  tell(object, "configured", data)
  if plan.has_other_line then
    line_up_anew(object)
  end
  if plan.is_counted then
    count_claims(object)
  end
  wake(object.topic, ALL)
  wake("room:" .. object.name, ALL)
end

--- What was set for a group, changed.
local function changed_own(command, before)
  local own = {}
  for name, content in pairs(command.forget and {} or before) do
    own[name] = content
  end
  for name, content in pairs(command.own) do
    own[name] = content or nil
  end
  own.held = own.paused and own.held or nil
  own.weight = own.weight ~= 1 and own.weight or nil
  return own
end

--- Change what was set for one group.
local function write_group(command, plan)
  local queue, found = open_queue(command.name), load_rules()
  local lane = found.lane(queue, command.group)
  local own, throttled_until = changed_own(command, lane.own), lane.throttled_until
  if command.throttle then
    throttled_until = command.throttle > 0 and now + command.throttle or 0
  end
  if is_equal(own, lane.own) and throttled_until == lane.throttled_until then
    return
  end
  local data = { group = command.group, paused = own.paused or false, limit = own.limit, weight = own.weight, rate = own.rate }
  data.throttle_s = command.throttle and command.throttle / 1000000
  tell(queue, "configured", data)
  create(queue)
  lane.own, lane.throttled_until = own, throttled_until
  if plan.is_counted then
    count_claims(queue, command.group)
  end
  if policy_of(queue).groups then
    found.touch(queue, command.group, 0)
  else
    found.lanes.save(queue.key, { lane })
  end
  wake(queue.topic, ALL)
end

function configure.write(command, plan)
  if command.group then
    write_group(command, plan)
  else
    write_whole(command, plan)
  end
  return shown_settings(open_object(command))
end

commands.Configure = configure
