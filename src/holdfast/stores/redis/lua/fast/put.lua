--- Fast put: messages without keys, under ids that are new, into a queue without a limit.
-- @include message_record
-- @include moments

--- What the records of messages with these options have in common: the beginning of their place in line, the head, all fields but n and
-- the value, and by when they have to be started.
local function pack_options(options)
  local position, start_by = moments_of(options)
  local packed, count = cmsgpack.pack("position", position, "created_at", now), 4
  if start_by then
    packed, count = packed .. cmsgpack.pack("start_by", start_by), count + 1
  end
  local kept = options.kept
  if not kept then
    return struct.pack(LINE, TOP, position), head_of(count) .. N, packed, start_by
  end
  for field, content in pairs(kept) do
    packed, count = packed .. cmsgpack.pack(field, content), count + 1
  end
  return struct.pack(LINE, TOP - (kept.priority or 0), position), head_of(count) .. N, packed, start_by
end

--- The number to draw next; nothing where the full rules must decide.
local function number_for(queue, ids)
  local settings = call("HMGET", queue, "created_at", "maxsize")
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  if #ids > MOST or known[2] or not settings[1] or settings[2] or number % TIDY == 0 then
    return nil
  end
  for _, message in ipairs(call("HMGET", queue .. ":messages", unpack(ids))) do
    if message then
      return nil
    end
  end
  return number
end

local function fast_put()
  local queue, ids, values, options = KEYS[2], command.ids, command.values, command.options
  local number = number_for(queue, ids)
  if not (number and keep_answer(TRUE)) then
    return nil
  end
  -- With room for one message, to be spared the growing.
  local pack, members, records, late = struct.pack, { nil, nil }, { nil, nil }, nil
  local line, head, fields, start_by, length, rest
  for i = 1, #ids do
    if options[i] then -- Options that all share come once.
      line, head, fields, start_by = pack_options(options[i])
      length = nil
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
end
