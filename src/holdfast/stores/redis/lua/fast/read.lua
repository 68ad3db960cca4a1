--- Fast read: entries by key.
-- @include begin

repeat
  local keys, entries, found = command.keys, KEYS[2] .. ":entries", {}
  local known = call("MGET", counter_key, moved_key)
  if #keys == 0 or #keys > MOST or known[2] then
    break
  end
  local kept
  if #keys > FEW then
    -- @include fast/read_within
    kept = read_within(entries, keys, 0)
  else
    kept = call("HMGET", entries, unpack(keys))
  end
  if not kept then
    break
  end
  for i, packed in ipairs(kept) do
    local entry = packed and cmsgpack.unpack(packed)
    if entry and (entry.expires_at == nil or entry.expires_at > now) then
      entry.key = keys[i]
      found[#found + 1] = entry
    end
  end
  return cmsgpack.pack({ entries = found, index = tonumber(known[1] or 0) })
until true
