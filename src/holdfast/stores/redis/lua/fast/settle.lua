--- Fast settle: messages of one queue, without keys and all still held, are done, or go back to the end of the line or to their place.
-- @include message_record

--- The token and the end of a claim, what its member among the leased begins with, and whether the message is of a lane or tied; nothing for
-- one on a key, and for no claim.
local function read_claim(packed)
  if is_first_claim(packed) then
    local token, ends_at = struct.unpack(NUMBER, packed, TOKEN_AT), struct.unpack(NUMBER, packed, UNTIL_AT)
    local moment = string.sub(packed, UNTIL_AT, UNTIL_AT + 7) .. string.sub(packed, N_AT, N_AT + 7)
    return token, ends_at, moment, string.find(packed, "\164lane", 1, true)
  end
  local message = cmsgpack.unpack(packed)
  if message.state == "leased" and not message.key then
    return message.token, message["until"], struct.pack(MOMENT, message["until"], message.n), message.tied or message.lane
  end
end

repeat
  local queue, messages, ids, tokens, to = KEYS[2], KEYS[2] .. ":messages", command.ids, command.tokens, command.to
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  if known[2] or number % TIDY == 0 or #ids > MOST or to == "dead" or (to == "ready" and command.return_to == "front") then
    break
  end
  local is_plain, leased, fields, kept, ready, is_tied = true, {}, {}, nil, nil, nil
  for i = 1, #ids do
    fields[i] = ids[i] .. "\0"
  end
  local found = call("HMGET", messages, unpack(fields))
  for i = 1, #ids do
    local token, ends_at, moment, tied
    if found[i] then
      token, ends_at, moment, tied = read_claim(found[i])
      is_tied = is_tied or tied
    end
    if token ~= tokens[i] or ends_at <= now then
      is_plain = false
      break
    end
    leased[i], fields[#ids + i] = moment .. ids[i], ids[i]
  end
  local told, count_told, used, names, free_slots = nil, 2, nil, {}, nil
  if is_tied and is_plain then
    -- @include fast/laned_settle
    local groups, has_groups
    groups, has_groups, used, names = read_ties(found)
    is_plain = to == "done" and groups and not (#names > 0 and has_late())
    if is_plain and has_groups then
      told, count_told = cmsgpack.pack("groups", groups), 3
    end
  end
  if is_plain and to == "ready" and command.counts and call("HEXISTS", queue, "policy") == 1 then
    is_plain = false -- It may say how often a message is tried, and when again.
  end
  if is_plain and to == "ready" then
    -- @include fast/return
    kept, ready = plan_return(messages, ids, found)
    is_plain = kept ~= nil
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  call("ZREM", queue .. ":leased", unpack(leased))
  local channels, counts = { WAKE .. "watch:queue:" .. command.queues[1] }, { ALL }
  if ready then
    call("ZADD", queue .. ":ready", unpack(ready))
    call("HSET", messages, unpack(kept))
    channels[2], counts[2] = WAKE .. "queue:" .. command.queues[1], #ids
  else
    call("HDEL", messages, unpack(fields))
  end
  if names and #names > 0 then
    local opened = free_slots(used, names, number)
    if opened > 0 then
      channels[2], counts[2] = WAKE .. "queue:" .. command.queues[1], opened
    end
  end
  if to == "ready" and command.counts then
    told, count_told = cmsgpack.pack("failed", true), 3
  end
  local number_text = text(number)
  call("SET", counter_key, number_text)
  write_event(queue, number, number_text, "settled", string.char(128 + count_told) .. cmsgpack.pack("ids", ids, "to", to) .. (told or ""))
  give_hints(channels, counts)
  return TRUE
until true
