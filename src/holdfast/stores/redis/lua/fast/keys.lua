--- What fast put asks about keys.
-- @include begin

--- The key of each item, false for none, and each key with the id that it will name; nothing where one is taken.
local function free_keys(ids, options)
  local keys, keyed, asked, seen = {}, {}, {}, {}
  for i = 1, #ids do
    local kept = (options[i] or options[1]).kept
    local key = kept and kept.key
    keys[i] = key or false
    if key then
      if seen[key] then
        return nil
      end
      seen[key] = true
      asked[#asked + 1], keyed[#keyed + 1], keyed[#keyed + 2] = key, key, ids[i]
    end
  end
  for _, id in ipairs(call("HMGET", KEYS[2] .. ":keys", unpack(asked))) do
    if id then
      return nil
    end
  end
  return keys, keyed
end
