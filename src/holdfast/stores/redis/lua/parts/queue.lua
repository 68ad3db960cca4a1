--- One queue, changed: how a message stood before is noted at its first change, and at the end every order is brought up to date.
-- @include messages

--- Note how a message stands, before it is changed.
local function touch(queue, message)
  if queue.before[message] then
    return
  end
  local state, member = standing(queue, message)
  queue.before[message] = { state = state, member = member, late = late_member(message) }
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

--- Give a message another state, and its key what follows from that.
local function change_state(queue, message, state)
  touch(queue, message)
  local was = state_of(message)
  message.state = state ~= "ready" and state or nil
  rekey(queue, message, was, state)
end

--- Add a new message.
local function add(queue, message)
  queue.messages[message.id] = message
  queue.before[message] = {}
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

--- Remove everything; answer how much there was.
local function clear_queue(queue)
  local count = 0
  for _, order in ipairs(queue.is_cleared and {} or { "ready", "leased", "dead", "buffered" }) do
    count = count + call("ZCARD", queue.key .. ":" .. order)
  end
  for _, message in ipairs(queue.changed) do
    count = count + (message.state ~= "gone" and 1 or 0) - (queue.before[message].state and 1 or 0)
  end
  queue.is_cleared = true
  for _, cache in ipairs({ "messages", "values", "stored", "sizes", "has_later", "live", "copies", "rekeyed", "changed", "before" }) do
    queue[cache] = {}
  end
  return count
end

--- Wake those who wait for what became ready, now or later.
local function announce(queue, messages)
  if #messages > 0 then
    wake(queue.topic, #messages)
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

--- What an event tells of messages: their ids, their keys if any has one (false for null), and more.
local function told(messages, more)
  local data = more or {}
  data.ids, data.keys = {}, {}
  local has_keys = false
  for i, message in ipairs(messages) do
    data.ids[i] = message.id
    data.keys[i] = message.key or false
    has_keys = has_keys or message.key ~= nil
  end
  data.keys = has_keys and data.keys or nil
  return data
end

do -- Lua allows 200 local names at a time.
  --- What leaves and what enters each order, for the messages that were changed.
  local function write_orders(queue)
    local leaving, entering = {}, {}
    local function move(order, member, into)
      into[order] = into[order] or {}
      if into == entering then
        table.insert(into[order], 0)
      end
      table.insert(into[order], member)
    end
    for _, message in ipairs(queue.changed) do
      local before = queue.before[message]
      local state, member = standing(queue, message)
      if before.state ~= state or before.member ~= member then
        if before.state then
          move(before.state, before.member, leaving)
        end
        if state then
          move(state, member, entering)
        end
      end
      local late = late_member(message)
      if before.late ~= late then
        if before.late then
          move("late", before.late, leaving)
        end
        if late then
          move("late", late, entering)
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

  local function write_queue(queue)
    if queue.is_cleared then
      for _, part in ipairs({ "messages", "keys", "ready", "leased", "late", "dead", "buffered" }) do
        call("UNLINK", queue.key .. ":" .. part)
      end
    end
    if #queue.changed > 0 then
      write_orders(queue)
      write_messages(queue)
      write_keys(queue)
    end
    write_settings(queue)
  end

  writers[#writers + 1] = function()
    for _, queue in pairs(queues) do
      write_queue(queue)
    end
  end
end
