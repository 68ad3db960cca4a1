--- Fast read: entries by key.
-- @include begin

local function fast_read()
  if #command.keys == 0 or #command.keys > MOST then
    return nil
  end
  local known, found = call("MGET", counter_key, moved_key), {}
  if known[2] or (#command.keys > FEW and size_of(KEYS[2] .. ":entries", command.keys) > ANSWER_BYTES) then
    return nil
  end
  for i, packed in ipairs(call("HMGET", KEYS[2] .. ":entries", unpack(command.keys))) do
    local entry = packed and cmsgpack.unpack(packed)
    if entry and (entry.expires_at == nil or entry.expires_at > now) then
      entry.key = command.keys[i]
      found[#found + 1] = entry
    end
  end
  return cmsgpack.pack({ entries = found, index = tonumber(known[1] or 0) })
end
