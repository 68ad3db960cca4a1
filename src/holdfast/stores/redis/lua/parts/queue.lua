--- One queue, changed: how a message stood before is noted at its first change, and at the end every order is brought up to date.
-- @include messages

-- What queues with policies need, made where a step meets one: see lane_rows.lua.
local rules, load_rules, rules_of

--- The policies of a queue, empty where it has none.
local function policy_of(queue)
  local settings = settings_of(queue)
  return settings and settings.policy or {}
end

--- The orders a message stands in, each with the member it has there.
local function orders_of(queue, message)
  local state, member = standing(queue, message)
  local orders = { late = late_member(message) or nil }
  if state then
    orders[state] = member
  end
  if message.lane and state == "ready" then
    local order, place = lane_standing(message)
    orders[order] = place
  end
  return orders, state
end

--- Note how a message stands, before it is changed.
local function touch(queue, message)
  if queue.before[message] then
    return
  end
  local orders, state = orders_of(queue, message)
  queue.before[message] = { state = state, orders = orders, lane = message.lane, position = message.position }
  queue.has_later[message] = true
  queue.changed[#queue.changed + 1] = message
end

local IS_ALIVE = { ready = true, leased = true }

--- Let a key name what follows from the state that one of its messages had, or has now.
local function rekey(queue, message, was, state)
  local key, id = message.key, message.id
  if not key then
    return
  end
  if IS_ALIVE[state] or (IS_ALIVE[was] and (queue.live[key] or id) == id) then
    queue.live[key] = IS_ALIVE[state] and id or false
    queue.rekeyed[key] = true
  end
  if state == "buffered" or (was == "buffered" and (queue.copies[key] or id) == id) then
    queue.copies[key] = state == "buffered" and id
  end
end

--- Give back what the claim of a message has used of limits.
local function untie(queue, message)
  if bit.band(message.tied, {{SLOT_OF_GROUP}} + {{SLOT_OF_QUEUE}}) > 0 then
    load_rules().untie(queue, message) -- It may have been claimed under limits that the queue no longer has.
  end
  message.tied = nil
end

--- Give a message another state, and its key what follows from that.
local function change_state(queue, message, state)
  touch(queue, message)
  local was = state_of(message)
  if was == "leased" and message.tied then
    untie(queue, message)
  end
  message.state = state ~= "ready" and state or nil
  queue.joins[message] = state == "ready" or nil
  rekey(queue, message, was, state)
end

--- Add a new message.
local function add(queue, message)
  queue.messages[message.id] = message
  queue.before[message] = { orders = {} }
  queue.changed[#queue.changed + 1] = message
  rekey(queue, message, nil, state_of(message))
end

--- Remove messages; those that are gone already are passed over.
local function remove(queue, messages)
  for _, message in ipairs(messages) do
    if queue.messages[message.id] == message then
      change_state(queue, message, "gone")
      queue.messages[message.id] = false
    end
  end
end

--- Remove everything; answer how much there was. Lanes with settings of their own stay, unless the queue is dropped.
local function clear_queue(queue, drop)
  local count = 0
  for _, order in ipairs(queue.is_cleared and {} or { "ready", "leased", "dead", "buffered", "done" }) do
    count = count + call("ZCARD", queue.key .. ":" .. order)
  end
  for _, message in ipairs(queue.changed) do
    count = count + (message.state ~= "gone" and 1 or 0) - (queue.before[message].state and 1 or 0)
  end
  if rules_of(queue) or call("EXISTS", queue.key .. ":groups") == 1 then
    load_rules().empty_lanes(queue, drop)
  end
  queue.is_cleared = true
  for _, cache in ipairs({ "messages", "values", "stored", "sizes", "has_later", "live", "copies", "rekeyed", "changed", "before" }) do
    queue[cache] = {}
  end
  return count
end

--- How many waiters are to be woken for messages that became ready, besides those that the lanes of a queue wake when they open.
local function waking(queue, messages)
  local settings, count = settings_of(queue), 0
  if not (settings and settings.policy and settings.policy.groups) then
    return #messages
  end
  for _, message in ipairs(messages) do
    count = count + (message.position > now and 1 or 0)
  end
  return count
end

--- Wake those who wait for what became ready, now or later.
local function announce(queue, messages)
  local count = waking(queue, messages)
  if count > 0 then
    wake(queue.topic, count)
  end
  for _, message in ipairs(messages) do
    if message.key then
      wake("key:" .. queue.name .. ":" .. message.key, 1)
    end
  end
end

--- Tell producers who wait that there is room; there is always room where there is no limit, and nobody waits.
local function make_room(queue, count)
  local settings = settings_of(queue)
  if count > 0 and settings and settings.maxsize then
    wake("room:" .. queue.name, count)
  end
end

--- How many messages are ready, now or later, as the queue stood before this step.
local function ready_count(queue)
  return call("ZCARD", queue.key .. ":ready")
end

--- Let the buffered copies under these keys be claimed, where no other message of the key is alive; answer those.
local function promote(queue, keys)
  local promoted = {}
  load_keys(queue, keys)
  for _, key in ipairs(keys) do
    local copy = copy_of(queue, key)
    if copy and not live_of(queue, key) then
      change_state(queue, copy, "ready")
      promoted[#promoted + 1] = copy
    end
  end
  announce(queue, promoted)
  return promoted
end

--- What an event tells of messages: their ids, their keys and groups if any has one (false for null), and more.
local function told(messages, more)
  local data = more or {}
  data.ids, data.keys, data.groups = {}, {}, {}
  local has_keys, has_groups = false, false
  for i, message in ipairs(messages) do
    data.ids[i] = message.id
    data.keys[i], data.groups[i] = message.key or false, message.group or false
    has_keys, has_groups = has_keys or message.key ~= nil, has_groups or message.group ~= nil
  end
  data.keys, data.groups = has_keys and data.keys or nil, has_groups and data.groups or nil
  return data
end

function load_rules()
  if not rules then
    rules = {}
    -- @include lane_rows
  end
  return rules
end

--- What a queue with policies needs, nil where claims look at no more than its line.
function rules_of(queue)
  local settings = settings_of(queue)
  return settings and settings.ruled and load_rules() or nil
end

local flush

do
  --- Let each message that was changed stand where its queue's policies say, and its lanes be refreshed.
  local function line_up(queue, found)
    local has_lanes = found and settings_of(queue).ruled == "lanes"
    for _, message in ipairs(queue.changed) do
      local before, state = queue.before[message], state_of(message)
      local has_moved = before.state ~= state or before.position ~= message.position or queue.joins[message]
      if state == "ready" and has_lanes and has_moved then
        found.line_up(queue, message)
      elseif (state == "ready" and not has_lanes) or state == "done" then
        message.lane, message.level, message.rank = nil, nil, nil
      end
      -- What the end of a claim changes in its lane, `untie` knows.
      local is_next = (before.state == "buffered" and state == "ready") or queue.joins[message] == "due"
      local has_left = before.state and before.state ~= "leased" and not is_next
      if found and has_moved and message.lane and (has_left or state == "ready" or state == "leased") then
        local stays_open = not has_left and not (message.rank and message.position > now)
        found.touch(queue, message.lane, state == "ready" and message.rank and not before.orders.lanes and 1 or 0, stays_open)
      end
      if found and has_left and before.lane and before.lane ~= message.lane then
        found.touch(queue, before.lane, 0)
      end
    end
  end

  --- What leaves and what enters each order, for the messages that were changed.
  local function write_orders(queue)
    local leaving, entering = {}, {}
    for _, message in ipairs(queue.changed) do
      local before, after = queue.before[message].orders, orders_of(queue, message)
      for order, member in pairs(before) do
        if after[order] ~= member then
          leaving[order] = leaving[order] or {}
          table.insert(leaving[order], member)
        end
      end
      for order, member in pairs(after) do
        if before[order] ~= member then
          entering[order] = entering[order] or {}
          table.insert(entering[order], 0)
          table.insert(entering[order], member)
        end
      end
    end
    for order, members in pairs(leaving) do
      call_with("ZREM", queue.key .. ":" .. order, members)
    end
    for order, members in pairs(entering) do
      call_with("ZADD", queue.key .. ":" .. order, members)
    end
  end

  local function write_messages(queue)
    local gone, kept = {}, {}
    for _, message in ipairs(queue.changed) do
      local id = message.id
      if message.state == "gone" then
        gone[#gone + 1], gone[#gone + 2] = id, id .. "\0"
      else
        message.id = nil -- it is the name of the field
        if queue.has_later[message] then
          kept[#kept + 1], kept[#kept + 2] = id .. "\0", cmsgpack.pack(message)
        end
        if queue.values[id] then
          message.value = queue.values[id]
          kept[#kept + 1], kept[#kept + 2] = id, cmsgpack.pack(message)
          message.value = nil
        end
        message.id = id
      end
    end
    call_with("HDEL", queue.key .. ":messages", gone)
    call_with("HSET", queue.key .. ":messages", kept)
  end

  local function write_keys(queue)
    local gone, kept = {}, {}
    for key in pairs(queue.rekeyed) do
      if queue.live[key] then
        kept[#kept + 1], kept[#kept + 2] = key, queue.live[key]
      else
        gone[#gone + 1] = key
      end
    end
    call_with("HDEL", queue.key .. ":keys", gone)
    call_with("HSET", queue.key .. ":keys", kept)
  end

  --- Write what the step has changed of a queue so far; lanes that become busy by it begin at the end of the round, which is `number`.
  function flush(queue, number)
    if queue.is_cleared and not queue.was_emptied then
      for _, part in ipairs({ "messages", "keys", "ready", "leased", "late", "dead", "buffered", "done", "lanes", "delayed" }) do
        call("UNLINK", queue.key .. ":" .. part)
      end
      queue.was_emptied = true
    end
    local found = rules_of(queue) or rules
    if #queue.changed > 0 then
      line_up(queue, found)
      write_orders(queue)
      write_messages(queue)
      write_keys(queue)
      for id, value in pairs(queue.values) do
        queue.stored[id] = value
      end
      queue.changed, queue.before, queue.rekeyed, queue.values, queue.joins = {}, {}, {}, {}, {}
    end
    if found then
      found.write_lanes(queue, number)
      found.write_gate(queue)
    end
    write_settings(queue)
  end

  writers[#writers + 1] = function()
    for _, queue in pairs(queues) do
      flush(queue)
    end
  end
end

--- Write the queues with policies after each command of a step: those that follow see what it did.
local function flush_ruled()
  for _, queue in pairs(queues) do
    if rules_of(queue) then
      flush(queue)
    end
  end
end
