--- The short way of Put, for messages without keys that share their options, into a queue without a limit, under ids that are new.
--
-- What is less plain goes on to the rules of put.lua, with nothing written. It reads: queue, ids, values, shared (the fields that the
-- messages begin with), delay.
-- @include spliced

--- The fields that all the messages share but their numbers and values, packed, and how many those are with them.
local function pack_shared(position)
  local packed, count = cmsgpack.pack("position", position, "created_at", now), 4
  for field, content in pairs(command.shared) do
    packed, count = packed .. cmsgpack.pack(field, content), count + 1
  end
  return packed, count
end

while command.ids do
  local queue, ids = KEYS[2], command.ids
  local settings = call("HMGET", queue, "created_at", "maxsize")
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain = not known[2] and settings[1] and not settings[2] and number % TIDY ~= 0
  for _, message in ipairs(call("HMGET", queue .. ":messages", unpack(ids))) do
    is_plain = is_plain and not message
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  -- With room for one message, to be spared the growing.
  local pack, members, records, values = struct.pack, { nil, nil }, { nil, nil }, command.values
  local position = now + command.delay
  local line = pack(LINE, TOP - (command.shared.priority or 0), position)
  local shared, count = pack_shared(position)
  local head, length, rest = head_of(count) .. N, nil, nil
  for i = 1, #ids do
    local id, value, n = ids[i], values[i], pack(NUMBER, number + i)
    if #value ~= length then -- Nearly always they are of one length.
      length = #value
      rest = shared .. VALUE .. pack(">I4", length)
    end
    members[2 * i - 1], members[2 * i] = "0", line .. n .. id
    records[2 * i - 1], records[2 * i] = id, head .. n .. rest .. value
  end
  call("ZADD", queue .. ":ready", unpack(members))
  call("HSET", queue .. ":messages", unpack(records))
  call("SET", counter_key, text(number + #ids))
  write_event(queue, number, text(number), "put", MAP_OF_1 .. cmsgpack.pack("ids", ids))
  give_hints({ WAKE .. "queue:" .. command.queue, WAKE .. "watch:queue:" .. command.queue }, { #ids, ALL })
  return TRUE
end
