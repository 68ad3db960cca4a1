--- Configure: create a queue or a dict, or change its settings or those of one group; what is not given stays.
--
-- KEYS  1 the store  2 the queue or dict
-- ARGV  1 the command: kind, name and, where they are to change, paused, maxsize (false: no limit), policies (by name; false: none), throttle;
--         group, and then own (limit, rate: false for none; weight, paused), throttle, forget
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers paused, maxsize, size, created_at, policy, live, tat, last and throttled_until.
-- @include queue
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

local function check_policy(command, plan)
  local policy, was = plan.after.policy or {}, plan.before and plan.before.policy or {}
  if policy.groups == "strict" and (policy.order == "lifo" or policy.aging_s or policy.group_limit) then
    refuse("StrictGroups", { queue = command.name })
  end
  local queue = open_queue(command.name)
  plan.has_other_line = is_other_line(was, policy)
  if plan.has_other_line and count_of(queue, { "ready", "leased", "buffered" }) > MANY then
    refuse("TooManyMessages", { queue = command.name, most = MANY, what = "ready, leased and buffered" })
  end
  local limits_groups = (policy.group_limit or policy.groups == "strict") and not (was.group_limit or was.groups == "strict")
  plan.is_counted = limits_groups or (policy.limit and not was.limit)
  if plan.is_counted and count_of(queue, { "leased" }) > MANY then
    refuse("TooManyMessages", { queue = command.name, most = MANY, what = "leased" })
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
    refuse("StrictGroups", { queue = command.name })
  end
  local lane = load_rules().lane(queue, command.group)
  local is_counted = policy.groups and command.own.limit and not rules.lanes.limit_of(lane, policy)
  if is_counted and count_of(queue, { "leased" }) > MANY then
    refuse("TooManyMessages", { queue = command.name, most = MANY, what = "leased" })
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
    end
  end
end

--- Let all messages stand where the new policies say.
local function line_up_anew(queue)
  local found = load_rules()
  local has_lanes, has_groups = queue.settings.ruled == "lanes", policy_of(queue).groups
  each_message(queue, { "ready", "leased", "buffered" }, function(message)
    message.lane, message.level, message.rank = nil, nil, nil
    if has_lanes then
      found.line_up(queue, message)
    end
    if not has_groups and message.tied then
      local tied = message.tied - bit.band(message.tied, {{SLOT_OF_GROUP}})
      message.tied = tied > 0 and tied or nil
    end
  end)
  if not has_groups then
    for _, lane in ipairs(found.all_lanes(queue)) do
      lane.live = 0
      found.lanes.refresh(lane, policy_of(queue), nil, 0)
      found.lanes.save(queue.key, lane)
    end
  end
end

--- Count what is leased under limits that are new.
local function count_leased(queue)
  local found, policy = load_rules(), policy_of(queue)
  local function stamp(message, slot)
    local tied = message.tied or 0
    if bit.band(tied, slot) > 0 then
      return false
    end
    message.tied = tied + slot
    return true
  end
  each_message(queue, { "leased" }, function(message)
    local lane = policy.groups and message.lane and found.lane(queue, message.lane)
    if lane and found.lanes.limit_of(lane, policy) and stamp(message, {{SLOT_OF_GROUP}}) then
      lane.live = lane.live + 1
      found.touch(queue, lane.name, 0)
    end
    if policy.limit and stamp(message, {{SLOT_OF_QUEUE}}) then
      queue.settings.live, queue.has_new_gate = queue.settings.live + 1, true
    end
  end)
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
  data.throttle_s = command.throttle and command.throttle / 1000000
  tell(object, "configured", data)
  if plan.has_other_line then
    line_up_anew(object)
  end
  if plan.is_counted then
    count_leased(object)
  end
  wake(object.topic, ALL)
  wake("room:" .. object.name, ALL)
end

--- Change what was set for one group.
local function write_group(command, plan)
  local queue, found = open_queue(command.name), load_rules()
  create(queue)
  local lane = found.lane(queue, command.group)
  local own = {}
  for name, content in pairs(command.forget and {} or lane.own) do
    own[name] = content
  end
  for name, content in pairs(command.own) do
    own[name] = content or nil
  end
  if command.own.paused ~= nil then
    own.held = nil
  end
  own.weight = own.weight ~= 1 and own.weight or nil
  lane.own = own
  if command.throttle then
    lane.throttled_until = command.throttle > 0 and now + command.throttle or 0
  end
  local data = { group = command.group, paused = own.paused or false, limit = own.limit or false, weight = own.weight or 1, rate = own.rate or false }
  data.throttle_s = command.throttle and command.throttle / 1000000
  tell(queue, "configured", data)
  if plan.is_counted then
    count_leased(queue)
  end
  found.refresh(queue, command.group, numbers.latest(), 0)
end

function configure.write(command, plan)
  if command.group then
    write_group(command, plan)
  else
    write_whole(command, plan)
  end
  local object = open_object(command)
  local after = plan.after or settings_of(object)
  return {
    paused = after.paused,
    maxsize = after.maxsize,
    size = after.maxsize and ready_count(object) or 0,
    created_at = after.created_at,
    policy = after.policy,
    live = after.live,
    tat = after.tat,
    last = after.last,
    throttled_until = after.throttled_until,
  }
end

commands.Configure = configure
