--- Fast checkpoint: one claim is renewed, and one plain entry is written if it was still held; see Together.plain.
-- @include message_record fast/entry

--- What became of a claimed message, with another end; then the end before and n, as its member among the leased has them. Nothing for a claim
-- that is lost.
local function renewed(packed, token, ends_at, progress)
  if is_first_claim(packed) then
    if struct.unpack(NUMBER, packed, TOKEN_AT) ~= token or struct.unpack(NUMBER, packed, UNTIL_AT) <= now then
      return nil
    end
    local after = string.sub(packed, 1, UNTIL_AT - 1) .. struct.pack(NUMBER, ends_at) .. string.sub(packed, UNTIL_AT + 8)
    return after, string.sub(packed, UNTIL_AT, UNTIL_AT + 7), string.sub(packed, N_AT, N_AT + 7)
  end
  local message = cmsgpack.unpack(packed)
  local ended_at = message["until"]
  if message.state ~= "leased" or message.token ~= token or ended_at <= now then
    return nil
  end
  message["until"] = ends_at
  if progress then
    message.failures = nil
  end
  return cmsgpack.pack(message), struct.pack(NUMBER, ended_at), struct.pack(NUMBER, message.n)
end

repeat
  local extend, write = command.commands[1], command.commands[2]
  local queue, dict, change, id = KEYS[2], KEYS[3], write.changes[1], extend.ids[1]
  local known = call("MGET", counter_key, moved_key)
  local newest = tonumber(known[1] or 0)
  local number = math.max(newest + 1, now)
  if known[2] or number % TIDY == 0 or newest % TIDY == 0 then
    break
  end
  local ends_at = extend.lease and now + extend.lease or NEVER
  local claim = call("HGET", queue .. ":messages", id .. "\0")
  local after, ended_at, n
  if claim then
    after, ended_at, n = renewed(claim, extend.tokens[1], ends_at, extend.progress)
  end
  if not after then
    break
  end
  local entry, packed, before, fence = plan_entry(dict, change, newest, number)
  if not entry then
    break
  end
  local answer = cmsgpack.pack({ { held = { true } }, { { entry = entry, because = "" } } })
  if not keep_answer(answer) then
    break
  end
  call("HSET", queue .. ":messages", id .. "\0", after)
  call("ZREM", queue .. ":leased", ended_at .. n .. id)
  call("ZADD", queue .. ":leased", "0", struct.pack(NUMBER, ends_at) .. n .. id)
  put_entry(dict, write.dict, change, number, packed, before, fence)
  return answer
until true
