--- The short way of Read, for entries by key.
--
-- What is less plain goes on to the rules of read.lua.
-- @include begin

while command.keys and #command.keys > 0 and #command.keys <= 1000 do
  local known, found = call("MGET", counter_key, moved_key), {}
  if known[2] or (#command.keys > FEW and size_of(KEYS[2] .. ":entries", command.keys) > ANSWER_BYTES) then
    break
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
