--- The short way of Claim: the first messages of a queue without a limit are due, and time has overtaken nobody.
--
-- What is less plain goes on to the rules of claim.lua, with nothing written.
-- @include begin

while not command.key and not command.take and command.limit <= 1000 do
  local queue, passed = KEYS[2], "(" .. struct.pack(NUMBER, now + 1)
  local settings = call("HMGET", queue, "created_at", "maxsize", "paused")
  local known = call("MGET", counter_key, moved_key)
  local token = math.max((known[1] or 0) + 1, now)
  local members = call("ZRANGEBYLEX", queue .. ":ready", "-", "+", "LIMIT", 0, command.limit)
  local is_plain = #members > 0
    and not known[2]
    and not settings[2]
    and settings[3] == "0"
    and token % TIDY ~= 0
    and not call("ZRANGEBYLEX", queue .. ":leased", "-", passed, "LIMIT", 0, 1)[1]
    and not call("ZRANGEBYLEX", queue .. ":late", "-", passed, "LIMIT", 0, 1)[1]
  if not is_plain then
    break
  end
  local ids, fields = {}, {}
  for i, member in ipairs(members) do
    is_plain = is_plain and struct.unpack(NUMBER, member, 5) <= now
    ids[i] = string.sub(member, 21)
    fields[2 * i - 1], fields[2 * i] = ids[i], ids[i] .. "\0"
  end
  local messages, values, keys, has_keys = {}, {}, {}, false
  local found = call("HMGET", queue .. ":messages", unpack(fields))
  for i = 1, #ids do
    messages[i], values[i] = cmsgpack.unpack(found[2 * i - 1]), found[2 * i]
    keys[i] = messages[i].key or false
    has_keys = has_keys or keys[i]
    is_plain = is_plain and not messages[i].start_by
  end
  if not (is_plain and keep_answer(cmsgpack.pack({ token = token, ids = ids }))) then
    break
  end
  local ends_at = command.lease and now + command.lease or NEVER
  local leased, kept = {}, {}
  for i, message in ipairs(messages) do
    local id = ids[i]
    message.state, message.holder, message.token, message.since = "leased", command.holder, token, now
    message["until"], message.expired_to, message.attempts = ends_at, command.expired_to, (message.attempts or 0) + 1
    leased[2 * i - 1], leased[2 * i] = 0, struct.pack(MOMENT, ends_at, message.n) .. id
    kept[2 * i - 1], kept[2 * i] = id, cmsgpack.pack(message)
    message.id = id
  end
  call("ZREM", queue .. ":ready", unpack(members))
  call("ZADD", queue .. ":leased", unpack(leased))
  call("HSET", queue .. ":messages", unpack(kept))
  call("SET", counter_key, text(token))
  write_event(queue, token, "claimed", { ids = ids, keys = has_keys and keys or nil, holder = command.holder })
  give_hints({ "watch:queue:" .. command.queue }, { ALL })
  return cmsgpack.pack({ messages = messages, values = values })
end
