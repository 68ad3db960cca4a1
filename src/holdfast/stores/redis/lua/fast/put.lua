--- Fast put: messages without keys, under ids that are new, into a queue without a limit.
-- @include message_record

--- What the records of messages with these options have in common: the beginning of their place in line, the head, all fields but n and
-- the value, and by when they have to be started.
local function pack_options(options)
  -- @include moments
  local position, start_by = moments_of(options)
  local packed, count, kept = cmsgpack.pack("position", position, "created_at", now), 4, options.kept
  if start_by then
    packed, count = packed .. cmsgpack.pack("start_by", start_by), count + 1
  end
  for field, content in pairs(kept) do
    packed, count = packed .. cmsgpack.pack(field, content), count + 1
  end
  return struct.pack(LINE, TOP - (kept.priority or 0), position), head_of(count) .. N, packed, start_by
end

repeat
  local queue, ids, values, options = KEYS[2], command.ids, command.values, command.options
  local settings = call("HMGET", queue, "created_at", "maxsize")
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain = #ids <= MOST and not known[2] and settings[1] and not settings[2] and number % TIDY ~= 0
  for _, message in ipairs(is_plain and call("HMGET", queue .. ":messages", unpack(ids)) or {}) do
    is_plain = is_plain and not message
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  -- With room for one message, to be spared the growing.
  local pack, members, records, late = struct.pack, { nil, nil }, { nil, nil }, nil
  local line, head, fields, start_by, length, rest
  for i = 1, #ids do
    local said = options[i]
    if said then -- Options that all share come once.
      length = nil
      if said.kept then
        line, head, fields, start_by = pack_options(said)
      else
        line, head, fields, start_by = pack(LINE, TOP, now), head_of(4) .. N, cmsgpack.pack("position", now, "created_at", now), nil
      end
    end
    local id, value, n = ids[i], values[i], pack(NUMBER, number + i)
    if #value ~= length then -- Nearly always they are of one length.
      length = #value
      rest = fields .. VALUE .. pack(">I4", length)
    end
    members[2 * i - 1], members[2 * i] = "0", line .. n .. id .. (start_by and "\0" or "")
    records[2 * i - 1], records[2 * i] = id, head .. n .. rest .. value
    if start_by then
      late = late or {}
      late[#late + 1], late[#late + 2] = "0", pack(NUMBER, start_by) .. n .. id
    end
  end
  call("ZADD", queue .. ":ready", unpack(members))
  call("HSET", queue .. ":messages", unpack(records))
  if late then
    call("ZADD", queue .. ":late", unpack(late))
  end
  call("SET", counter_key, text(number + #ids))
  write_event(queue, number, text(number), "put", MAP_OF_1 .. cmsgpack.pack("ids", ids))
  give_hints({ WAKE .. "queue:" .. command.queue, WAKE .. "watch:queue:" .. command.queue }, { #ids, ALL })
  return TRUE
until true
