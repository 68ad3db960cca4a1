--- Fast read: entries by key.
-- @include begin

repeat
  local keys, entries, found = command.keys, KEYS[2] .. ":entries", {}
  local known = call("MGET", counter_key, moved_key)
  if #keys == 0 or #keys > MOST or known[2] then
    break
  end
  if #keys > FEW then
    -- @include answer_size
    if size_of(entries, keys) > ANSWER_BYTES then
      break
    end
  end
  for i, packed in ipairs(call("HMGET", entries, unpack(keys))) do
    local entry = packed and cmsgpack.unpack(packed)
    if entry and (entry.expires_at == nil or entry.expires_at > now) then
      entry.key = keys[i]
      found[#found + 1] = entry
    end
  end
  return cmsgpack.pack({ entries = found, index = tonumber(known[1] or 0) })
until true
