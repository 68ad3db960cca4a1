--- The short way of Settle: messages of one queue, without keys and all still held, are done.
--
-- What is less plain goes on to the rules of settle.lua, with nothing written. It reads: queue, ids, tokens.
-- @include spliced

--- The token and the end of a claim, and what its member among the leased begins with; nothing for one on a key, and for no claim.
local function read_claim(packed)
  if is_spliced(packed) then
    local token, ends_at = struct.unpack(NUMBER, packed, 22), struct.unpack(NUMBER, packed, 37)
    return token, ends_at, string.sub(packed, 37, 44) .. string.sub(packed, 7, 14)
  end
  local message = cmsgpack.unpack(packed)
  if message.state == "leased" and not message.key then
    return message.token, message["until"], struct.pack(MOMENT, message["until"], message.n)
  end
end

while command.ids do
  local queue, messages, ids, tokens = KEYS[2], KEYS[2] .. ":messages", command.ids, command.tokens
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain, leased, fields = not known[2] and number % TIDY ~= 0, {}, {}
  for i = 1, #ids do
    fields[i] = ids[i] .. "\0"
  end
  for i, packed in ipairs(call("HMGET", messages, unpack(fields))) do
    local token, ends_at, moment
    if packed then
      token, ends_at, moment = read_claim(packed)
    end
    if token ~= tokens[i] or ends_at <= now then
      is_plain = false
      break
    end
    leased[i], fields[#ids + i] = moment .. ids[i], ids[i]
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  call("ZREM", queue .. ":leased", unpack(leased))
  call("HDEL", messages, unpack(fields))
  local number_text = text(number)
  call("SET", counter_key, number_text)
  write_event(queue, number, number_text, "settled", MAP_OF_2 .. cmsgpack.pack("ids", ids, "to", "done"))
  give_hints({ WAKE .. "watch:queue:" .. command.queue }, { ALL })
  return TRUE
end
