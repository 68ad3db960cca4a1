--- Fast settle: messages of one queue, without keys and all still held, are done, or go back to the end of the line or to their place.
-- @include message_record
-- @include ending

--- The token and the end of a claim, and what its member among the leased begins with; nothing for one on a key, and for no claim.
local function read_claim(packed)
  if is_first_claim(packed) then
    local token, ends_at = struct.unpack(NUMBER, packed, TOKEN_AT), struct.unpack(NUMBER, packed, UNTIL_AT)
    return token, ends_at, string.sub(packed, UNTIL_AT, UNTIL_AT + 7) .. string.sub(packed, N_AT, N_AT + 7)
  end
  local message = cmsgpack.unpack(packed)
  if message.state == "leased" and not message.key then
    return message.token, message["until"], struct.pack(MOMENT, message["until"], message.n)
  end
end

--- The members among the leased, and what is known of each message; nothing where one is not held.
local function read_claims(messages, ids, tokens)
  local leased, fields = {}, {}
  for i = 1, #ids do
    fields[i] = ids[i] .. "\0"
  end
  local found = call("HMGET", messages, unpack(fields))
  for i = 1, #ids do
    local token, ends_at, moment
    if found[i] then
      token, ends_at, moment = read_claim(found[i])
    end
    if token ~= tokens[i] or ends_at <= now then
      return nil
    end
    leased[i] = moment .. ids[i]
  end
  return leased, found
end

--- The message in what is known of it; one whose first claim this is, is joined with how it was put.
local function whole_message(messages, id, packed)
  local message = cmsgpack.unpack(packed)
  if is_first_claim(packed) then
    local claim = message
    message = cmsgpack.unpack(call("HGET", messages, id))
    for field, content in pairs(claim) do
      message[field] = content
    end
    message.value = nil
  end
  return message
end

--- What is kept of messages that go back, and their members among the ready; nothing where the budget of one is spent.
local function plan_return(messages, ids, found)
  local kept, ready, counts = {}, {}, command.counts
  for i = 1, #ids do
    local message = whole_message(messages, ids[i], found[i])
    if counts and is_spent(message, (message.failures or 0) + 1, command) then
      return nil
    end
    local ending = ending_of(message, now, counts and "failed" or "released", command.error)
    message.state, message.position = nil, position_behind(message, command.return_to, now, command.delay)
    remember(message, ending, counts)
    kept[2 * i - 1], kept[2 * i] = ids[i] .. "\0", cmsgpack.pack(message)
    local place = struct.pack(READY, TOP - (message.priority or 0), message.position, message.n)
    ready[2 * i - 1], ready[2 * i] = "0", place .. ids[i] .. "\0"
  end
  return kept, ready
end

--- Remove messages, and what became of them.
local function delete(messages, ids)
  local fields = {}
  for i = 1, #ids do
    fields[2 * i - 1], fields[2 * i] = ids[i], ids[i] .. "\0"
  end
  call("HDEL", messages, unpack(fields))
end

local function fast_settle()
  local queue, messages, ids, to = KEYS[2], KEYS[2] .. ":messages", command.ids, command.to
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  if known[2] or number % TIDY == 0 or #ids > MOST or to == "dead" or (to == "ready" and command.return_to == "front") then
    return nil
  end
  local leased, found = read_claims(messages, ids, command.tokens)
  local kept, ready
  if leased and to == "ready" then
    kept, ready = plan_return(messages, ids, found)
  end
  if not leased or (to == "ready" and not kept) or not keep_answer(TRUE) then
    return nil
  end
  call("ZREM", queue .. ":leased", unpack(leased))
  local channels, counts = { WAKE .. "watch:queue:" .. command.queues[1] }, { ALL }
  if ready then
    call("ZADD", queue .. ":ready", unpack(ready))
    call("HSET", messages, unpack(kept))
    channels[2], counts[2] = WAKE .. "queue:" .. command.queues[1], #ids
  else
    delete(messages, ids)
  end
  local number_text = text(number)
  call("SET", counter_key, number_text)
  write_event(queue, number, number_text, "settled", MAP_OF_2 .. cmsgpack.pack("ids", ids, "to", to))
  give_hints(channels, counts)
  return TRUE
end
