--- Fast put: messages under ids that are new, and keys that nobody has, into a queue without a limit.
-- @include message_record

repeat
  local queue, ids, values, options = KEYS[2], command.ids, command.values, command.options
  local settings = call("HMGET", queue, "created_at", "maxsize", "ruled", "policy")
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
  local policy, joined, pack_lane, join_lanes
  if is_plain and settings[3] == "lanes" then
    -- @include fast/laned_put
    policy = cmsgpack.unpack(settings[4])
    joined = lanes_of(ids, options, policy)
    is_plain = joined
  end
  if not (is_plain and keep_answer(TRUE)) then
    break
  end
  -- With room for one message, to be spared the growing.
  local pack, members, records, late = struct.pack, { nil, nil }, { nil, nil }, nil
  local line, head, fields, mark, start_by, length, rest, place, in_lanes, groups
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
        mark = (kept.key or kept.group) and "\0" or mark
      end
      if policy then
        local of_lane, count_more
        place, of_lane, count_more = pack_lane(policy, kept)
        fields, count, mark, in_lanes = fields .. of_lane, count + count_more, "\0", in_lanes or {}
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
    if place then
      in_lanes[2 * i - 1], in_lanes[2 * i] = "0", place .. n .. id
    end
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
  local channels, counts = { WAKE .. "queue:" .. command.queue, WAKE .. "watch:queue:" .. command.queue }, { #ids, ALL }
  local told, count_told = cmsgpack.pack("ids", ids), 1
  if command.is_grouped then
    groups = {}
    for i = 1, #ids do
      groups[i] = ((options[i] or options[1]).kept or groups).group or false
    end
    told, count_told = told .. cmsgpack.pack("groups", groups), 2
  end
  if in_lanes then
    call("ZADD", queue .. ":lanes", unpack(in_lanes))
    counts[1] = policy.groups and join_lanes(joined, policy, number + #ids) or #ids
  end
  if keys then
    told, count_told = told .. cmsgpack.pack("keys", keys), count_told + 1
    call("HSET", queue .. ":keys", unpack(keyed))
    for i = 1, #keyed, 2 do
      channels[#channels + 1], counts[#counts + 1] = WAKE .. "key:" .. command.queue .. ":" .. keyed[i], 1
    end
  end
  call("SET", counter_key, text(number + #ids))
  write_event(queue, number, text(number), "put", string.char(128 + count_told) .. told)
  give_hints(channels, counts)
  return TRUE
until true
