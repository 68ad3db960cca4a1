--- The short way of Put, for messages without keys that share their options, into a queue without a limit, under ids that are new.
--
-- What is less plain goes on to the rules of put.lua, with nothing written. It reads: queue, ids, values, shared (the fields that the
-- messages begin with), delay.
-- @include begin

while command.ids do
  local queue, ids, shared = KEYS[2], command.ids, command.shared
  local settings = call("HMGET", queue, "created_at", "maxsize")
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain = not known[2] and settings[1] and not settings[2] and (number + #ids) % TIDY ~= 0
  for _, message in ipairs(call("HMGET", queue .. ":messages", unpack(ids))) do
    is_plain = is_plain and not message
  end
  local answer = cmsgpack.pack(true)
  if not (is_plain and keep_answer(answer)) then
    break
  end
  local members, fields = {}, {}
  local top, position = TOP - (shared.priority or 0), now + command.delay
  shared.position, shared.created_at = position, now
  for i, id in ipairs(ids) do
    shared.n = number + i - 1
    members[2 * i - 1], members[2 * i] = 0, struct.pack(READY, top, position, shared.n) .. id
    fields[4 * i - 3], fields[4 * i - 2] = id, cmsgpack.pack(shared)
    fields[4 * i - 1], fields[4 * i] = id .. "\0", command.values[i]
  end
  call("ZADD", queue .. ":ready", unpack(members))
  call("HSET", queue .. ":messages", unpack(fields))
  call("SET", counter_key, text(number + #ids))
  write_event(queue, number + #ids, "put", { ids = ids })
  give_hints({ "queue:" .. command.queue, "watch:queue:" .. command.queue }, { #ids, ALL })
  return answer
end
