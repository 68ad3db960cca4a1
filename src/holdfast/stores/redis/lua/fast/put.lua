--- Fast put: messages under ids that are new, and keys that nobody has, into a queue without a limit.
-- @include message_record

repeat
  local queue, ids, values, options = KEYS[2], command.ids, command.values, command.options
  local settings = call("HMGET", queue, "created_at", "maxsize")
  local known = call("MGET", counter_key, moved_key)
  local number = math.max((known[1] or 0) + 1, now)
  local is_plain = #ids <= MOST and not known[2] and settings[1] and not settings[2] and number % TIDY ~= 0
  for _, message in ipairs(is_plain and call("HMGET", queue .. ":messages", unpack(ids)) or {}) do
    is_plain = is_plain and not message
  end
  local keys, keyed
  if is_plain and command.is_keyed then
    -- @include fast/keys
    keys, keyed = free_keys(ids, options)
    is_plain = keys
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  -- With room for one message, to be spared the growing.
  local pack, members, records, late = struct.pack, { nil, nil }, { nil, nil }, nil
  local line, head, fields, mark, start_by, length, rest
  for i = 1, #ids do
    local said = options[i]
    if said then -- Options that all share come once. What their records have in common is packed once, too.
      local position, count, kept = now, 4, said.kept
      length, mark, start_by = nil, "", nil
      if said.delay or said.at or said.start_within then
        -- @include moments
        position, start_by = moments_of(said)
      end
      fields = cmsgpack.pack("position", position, "created_at", now)
      if start_by then
        fields, count, mark = fields .. cmsgpack.pack("start_by", start_by), count + 1, "\0"
      end
      if kept then
        for field, content in pairs(kept) do
          fields, count = fields .. cmsgpack.pack(field, content), count + 1
        end
        mark = kept.key and "\0" or mark
      end
      line, head = pack(LINE, TOP - (kept and kept.priority or 0), position), head_of(count) .. N
    end
    local id, value, n = ids[i], values[i], pack(NUMBER, number + i)
    if #value ~= length then -- Nearly always they are of one length.
      length = #value
      rest = fields .. VALUE .. pack(">I4", length)
    end
    members[2 * i - 1], members[2 * i] = "0", line .. n .. id .. mark
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
  local event, channels, counts = MAP_OF_1, { WAKE .. "queue:" .. command.queue, WAKE .. "watch:queue:" .. command.queue }, { #ids, ALL }
  local told = cmsgpack.pack("ids", ids)
  if keys then
    event, told = MAP_OF_2, told .. cmsgpack.pack("keys", keys)
    call("HSET", queue .. ":keys", unpack(keyed))
    for i = 1, #keyed, 2 do
      channels[#channels + 1], counts[#counts + 1] = WAKE .. "key:" .. command.queue .. ":" .. keyed[i], 1
    end
  end
  call("SET", counter_key, text(number + #ids))
  write_event(queue, number, text(number), "put", event .. told)
  give_hints(channels, counts)
  return TRUE
until true
