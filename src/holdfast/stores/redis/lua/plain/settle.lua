--- The short way of Settle: messages of one queue, without keys and all still held, are done.
--
-- What is less plain goes on to the rules of settle.lua, with nothing written. It reads: queue, ids, tokens.
-- @include begin

while command.ids do
  local queue, ids, tokens = KEYS[2], command.ids, command.tokens
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain, leased, fields = not known[2] and number % TIDY ~= 0, {}, {}
  for i, packed in ipairs(call("HMGET", queue .. ":messages", unpack(ids))) do
    local message = packed and cmsgpack.unpack(packed)
    if not message or message.state ~= "leased" or message.token ~= tokens[i] or message["until"] <= now or message.key then
      is_plain = false
      break
    end
    leased[i] = struct.pack(MOMENT, message["until"], message.n) .. ids[i]
    fields[2 * i - 1], fields[2 * i] = ids[i], ids[i] .. "\0"
  end
  local answer = cmsgpack.pack(true)
  if not (is_plain and keep_answer(answer)) then
    break
  end
  call("ZREM", queue .. ":leased", unpack(leased))
  call("HDEL", queue .. ":messages", unpack(fields))
  call("SET", counter_key, text(number))
  write_event(queue, number, "settled", { ids = ids, to = "done" })
  give_hints({ "watch:queue:" .. command.queue }, { ALL })
  return answer
end
