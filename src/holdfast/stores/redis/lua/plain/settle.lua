--- The short way of Settle: messages of one queue, without keys and all still held, are done.
--
-- What is less plain goes on to the rules of settle.lua, with nothing written. It reads: queue, ids, tokens.
-- @include spliced

--- The token and the end of a claim, and what its member among the leased begins with; nothing for one on a key, and for no claim.
local function read_claim(packed)
  if is_spliced(packed) then
    if string.sub(packed, 15, 21) ~= TOKEN then
      return nil
    end
    local token, ends_at = struct.unpack(NUMBER, packed, 22), struct.unpack(NUMBER, packed, 37)
    return token, ends_at, string.sub(packed, 37, 44) .. string.sub(packed, 7, 14)
  end
  local message = cmsgpack.unpack(packed)
  if message.state == "leased" and not message.key then
    return message.token, message["until"], struct.pack(MOMENT, message["until"], message.n)
  end
end

while command.ids do
  local queue, ids, tokens = KEYS[2], command.ids, command.tokens
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain, leased, fields = not known[2] and number % TIDY ~= 0, {}, {}
  for i, packed in ipairs(call("HMGET", queue .. ":messages", unpack(ids))) do
    local token, ends_at, moment
    if packed then
      token, ends_at, moment = read_claim(packed)
    end
    if token ~= tokens[i] or ends_at <= now then
      is_plain = false
      break
    end
    leased[i] = moment .. ids[i]
    fields[2 * i - 1], fields[2 * i] = ids[i], ids[i] .. "\0"
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  call("ZREM", queue .. ":leased", unpack(leased))
  call("HDEL", queue .. ":messages", unpack(fields))
  local number_text = text(number)
  call("SET", counter_key, number_text)
  write_event(queue, number, number_text, "settled", MAP_OF_2 .. cmsgpack.pack("ids", ids, "to", "done"))
  give_hints({ "watch:queue:" .. command.queue }, { ALL })
  return TRUE
end
