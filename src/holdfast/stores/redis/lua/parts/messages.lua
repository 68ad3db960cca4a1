--- The messages of one queue, read: found by id, by key, and in the order of each state.
--
-- Under the key of a queue Q lie
--   Q            its settings                            hash
--   Q:messages   id -> the message as it was put, with its value; id, NUL -> what became of it since, if anything did   hash
--   Q:keys       key -> id of the ready or leased one    hash
--   Q:ready      priority, position, n, id; NUL if it is not fresh   in claim order; a delayed message is one whose position lies ahead
--   Q:leased     until, n, id                            by lease end
--   Q:late       start_by, n, id                         the ready ones that have to be started by then and never were
--   Q:dead       dead_at, n, id                          by burial
--   Q:buffered   key, NUL, n, id                         copies behind a living message, by key
--   Q:done       ended_at, n, id                         those that are kept for a while, by their end
--   Q:lanes, Q:delayed, Q:lane, Q:groups, Q:open, Q:asleep   see lanes.lua
--   Q:events, Q:floor                                    its log
-- Those in an order are sorted sets of score 0: their members begin with what they are ordered by, as bytes that sort as numbers do, so
-- one command finds any range of them in O(log n).
--
-- So a put writes a message and its value at once, and a claim leaves the value where it is. What became of a message is all of it but
-- its id and its value; only the first claim of a fresh one, by the fast path, keeps no more than what it added (see message_record.lua). Fresh is
-- a message of which nothing is to be known but how it was put, and which a claim may hand out as it is.
--
-- A message is loaded once and changed in place: see queue.lua.
-- @include answer_size
-- @include objects
-- @include message_record
-- @include lane_place
-- @include ready_place

local queues = {}

local function open_queue(name)
  return open(queues, "queue", name, function()
    return {
      messages = {}, -- by id; false: there is none
      values = {}, -- by id: new ones, to be written
      stored = {}, -- by id: values that were read
      sizes = {}, -- by id: how much of an answer the message takes, where that was asked
      has_later = {}, -- by message: whether what became of it is kept, or will be
      live = {}, -- by key: the id of the ready or leased message, false: there is none
      copies = {}, -- by key: the id of the buffered message
      rekeyed = {}, -- keys whose living message changed
      changed = {}, -- messages, in the order of their first change
      before = {}, -- by message: how it stood
      joins = {}, -- messages that join a line anew, "due" where their moment has come
      lanes = {}, -- by name: lanes that were read
      touched = {}, -- by name: lanes to refresh, and how many messages joined their lines
      may_close = {}, -- by name: whether the lane may have to be closed, too
      is_cleared = false,
    }
  end)
end

--- What the members of a line of one priority begin with: the highest priority first.
local function priority_bytes(priority)
  return struct.pack(">I4", TOP - priority)
end

--- The id in a member of an order.
local function id_in(order, member)
  if order == "buffered" then
    return string.sub(member, string.find(member, "\0", 1, true) + 9)
  elseif order == "ready" then
    return string.sub(member, READY_ID_AT, string.byte(member, -1) == 0 and -2 or -1)
  end
  return string.sub(member, MOMENT_ID_AT)
end

local function state_of(message)
  return message.state or "ready"
end

--- Where a message stands in the order of its state.
local function place_of(message)
  local state = state_of(message)
  if state == "ready" then
    return { -(message.priority or 0), message.position, message.n }
  elseif state == "buffered" then
    return { message.key, message.n }
  end
  return { state == "leased" and message["until"] or state == "dead" and message.dead_at or message.ended_at, message.n }
end

local function is_fresh(queue, message)
  return not (queue.has_later[message] or message.key or message.start_by or message.attempts or message.group or message.lane)
end

--- The order a message stands in, and the member it has there.
local function standing(queue, message)
  local state = state_of(message)
  if state == "ready" then
    return state, ready_place(message) .. message.id .. (is_fresh(queue, message) and "" or "\0")
  elseif state == "leased" then
    return state, struct.pack(MOMENT, message["until"], message.n) .. message.id
  elseif state == "dead" then
    return state, struct.pack(MOMENT, message.dead_at, message.n) .. message.id
  elseif state == "buffered" then
    return state, message.key .. "\0" .. sortable(message.n) .. message.id
  elseif state == "done" then
    return state, struct.pack(MOMENT, message.ended_at, message.n) .. message.id
  end
  return nil -- It is gone.
end

--- Where a ready message of a queue with lanes stands besides: in its line, or among those that are not due.
local function lane_standing(message)
  if not message.rank then
    return "delayed", struct.pack(MOMENT, message.position, message.n) .. message.id
  end
  return "lanes", message.lane .. "\0" .. lane_place(message.level or 0, message.rank) .. sortable(message.n) .. message.id
end

--- Whether it has to be started by some moment and never was.
local function can_be_late(message)
  return message.start_by and state_of(message) == "ready" and (message.attempts or 0) == 0
end

local function is_late(message)
  return can_be_late(message) and message.start_by <= now
end

local function is_held(message)
  return message.state == "leased" and message["until"] > now
end

local function late_member(message)
  return can_be_late(message) and struct.pack(MOMENT, message.start_by, message.n) .. message.id
end

--- Take a message in that was read from Redis.
local function keep_loaded(queue, id, message, has_later)
  message.id = id
  queue.messages[id], queue.has_later[message] = message, has_later
end

--- Read messages as they were put, each with what its first claim added, if that is known.
local function load_put(queue, ids, claims)
  for i, packed in ipairs(fields_of(queue.key .. ":messages", ids)) do
    if packed then
      local message = cmsgpack.unpack(packed)
      queue.stored[ids[i]], message.value = message.value, nil
      for field, content in pairs(claims[i] and cmsgpack.unpack(claims[i]) or {}) do
        message[field] = content
      end
      keep_loaded(queue, ids[i], message, claims[i] and true)
    end
  end
end

--- Read those messages of the queue that were not read yet.
local function load_messages(queue, ids)
  local missing, fields = {}, {}
  for _, id in ipairs(ids) do
    if queue.messages[id] == nil then
      missing[#missing + 1], fields[#fields + 1] = id, id .. "\0"
      queue.messages[id] = false
    end
  end
  if #missing == 0 or queue.is_cleared then
    return
  end
  local put, claims = {}, {}
  for i, packed in ipairs(fields_of(queue.key .. ":messages", fields)) do
    if packed and not is_first_claim(packed) then
      keep_loaded(queue, missing[i], cmsgpack.unpack(packed), true)
    else
      put[#put + 1], claims[#put + 1] = missing[i], packed
    end
  end
  load_put(queue, put, claims)
end

--- The messages with these ids, in the order asked, but for those that do not exist.
local function pick(queue, ids)
  load_messages(queue, ids)
  local found = {}
  for _, id in ipairs(ids) do
    found[#found + 1] = queue.messages[id] or nil
  end
  return found
end

--- How much of an answer a message takes.
local function message_bytes(queue, message)
  return queue.sizes[message.id] or size_of(queue.key .. ":messages", { message.id, message.id .. "\0" })
end

--- Call `visit` with the messages with these ids, in this order, until it answers false; answer whether it never did.
local function visit_messages(queue, ids, visit)
  return in_portions(queue.key .. ":messages", ids, "\0", queue.sizes, function(portion)
    for _, message in ipairs(pick(queue, portion)) do
      if visit(message) == false then
        return false
      end
    end
  end)
end

--- The first of the messages that the answer takes, and whether it does not take them all.
local function fitting(queue, messages)
  local found = {}
  for i, message in ipairs(messages) do
    if not bring(message_bytes(queue, message)) then
      if i == 1 then
        refuse_answer()
      end
      return found, true
    end
    found[i] = message
  end
  return found, false
end

--- Find the living messages and the buffered copies under these keys, for `live_of` and `copy_of`.
local function load_keys(queue, keys)
  local missing, ids = {}, {}
  for _, key in ipairs(keys) do
    if queue.live[key] == nil or queue.copies[key] == nil then
      missing[#missing + 1] = key
    end
  end
  local has_copies = #missing > 0 and not queue.is_cleared and call("EXISTS", queue.key .. ":buffered") == 1
  local found = queue.is_cleared and {} or fields_of(queue.key .. ":keys", missing)
  for i, key in ipairs(missing) do
    if queue.live[key] == nil then
      queue.live[key] = found[i] or false
      ids[#ids + 1] = found[i] or nil
    end
    if queue.copies[key] == nil then
      local member = has_copies
        and call("ZRANGEBYLEX", queue.key .. ":buffered", "[" .. key .. "\0", "(" .. key .. "\1", "LIMIT", 0, 1)[1]
      queue.copies[key] = member and string.sub(member, #key + 10) or false
      ids[#ids + 1] = queue.copies[key] or nil
    end
  end
  load_messages(queue, ids)
end

--- The ready or leased message under a key that was looked up, or nil.
local function live_of(queue, key)
  return queue.live[key] and queue.messages[queue.live[key]] or nil
end

--- The buffered copy under a key that was looked up, or nil.
local function copy_of(queue, key)
  return queue.copies[key] and queue.messages[queue.copies[key]] or nil
end

--- The keys of messages that have one.
local function keys_of(messages)
  local keys = {}
  for _, message in ipairs(messages) do
    keys[#keys + 1] = message.key
  end
  return keys
end

local function ids_of(messages)
  local ids = {}
  for i, message in ipairs(messages) do
    ids[i] = message.id
  end
  return ids
end

--- The values of messages of this queue.
local function values_of(queue, messages)
  local ids = {}
  for _, message in ipairs(messages) do
    if queue.stored[message.id] == nil then
      ids[#ids + 1] = message.id
    end
  end
  for i, packed in ipairs(fields_of(queue.key .. ":messages", ids)) do
    queue.stored[ids[i]] = packed and cmsgpack.unpack(packed).value
  end
  local values = {}
  for i, message in ipairs(messages) do
    values[i] = queue.values[message.id] or queue.stored[message.id]
  end
  return values
end
