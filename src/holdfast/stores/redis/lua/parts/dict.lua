--- One dict: its entries, found by key and in order of key text, and the fences that guard its keys.
--
-- Under the key of a dict D lie
--   D            its settings                                          hash
--   D:entries    key -> the entry, packed                              hash
--   D:order      keys, by their text                                   sorted set of score 0
--   D:expiries   expires_at, key: the entries that have an end         sorted set of score 0, by that moment
--   D:fences     key -> the highest fence that wrote it, deleted or not, for good   hash
--   D:leases     see lease_table.lua                                        hash
--   D:events, D:floor                                                  its log
-- Entries past their time count as absent.
-- @include objects

local dicts = {}

local function open_dict(name)
  return open(dicts, "dict", name, function()
    return {
      entries = {}, -- by key; false: there is none
      stored = {}, -- by key: the entry as it lies in Redis, past its time or not
      changed = {}, -- keys
      fences = {}, -- by key: new ones
      is_cleared = false,
    }
  end)
end

local function is_there(entry)
  return entry and (entry.expires_at == nil or entry.expires_at > now)
end

--- Read those entries that were not read yet.
local function load_entries(dict, keys)
  local missing = {}
  for _, key in ipairs(keys) do
    if dict.entries[key] == nil then
      missing[#missing + 1] = key
    end
  end
  if dict.is_cleared then
    return
  end
  for i, packed in ipairs(fields_of(dict.key .. ":entries", missing)) do
    local key = missing[i]
    local entry = packed and cmsgpack.unpack(packed)
    if entry then
      entry.key = key
    end
    dict.stored[key] = entry
    dict.entries[key] = is_there(entry) and entry or false
  end
end

local function entry_of(dict, key)
  load_entries(dict, { key })
  return dict.entries[key] or nil
end

--- The highest fence that wrote a key, 0 for none.
local function fence_of(dict, key)
  return dict.fences[key] or tonumber(call("HGET", dict.key .. ":fences", key) or 0)
end

local function raise_fence(dict, key, fence)
  if fence > fence_of(dict, key) then
    dict.fences[key] = fence
  end
end

--- Save an entry, or with false remove it.
local function save_entry(dict, key, entry)
  load_entries(dict, { key })
  dict.entries[key] = entry
  dict.changed[#dict.changed + 1] = key
end

--- How many entries are there, as the dict stood before this step.
local function entry_count(dict)
  return call("HLEN", dict.key .. ":entries") - call("ZLEXCOUNT", dict.key .. ":expiries", "-", "(" .. sortable(now + 1))
end

local function clear_dict(dict)
  local count = entry_count(dict)
  dict.is_cleared, dict.entries, dict.stored, dict.changed = true, {}, {}, {}
  return count
end

--- Remove up to `limit` entries past their time, and tell of it; answer how many.
local function expire_entries(dict, limit)
  local members = call("ZRANGEBYLEX", dict.key .. ":expiries", "-", "(" .. sortable(now + 1), "LIMIT", 0, limit)
  for _, member in ipairs(members) do
    local key = string.sub(member, 9)
    tell(dict, "expired", { key = key })
    save_entry(dict, key, false)
  end
  return #members
end

local function write_entries(dict)
  local gone, kept, leaving, entering, ending, starting = {}, {}, {}, {}, {}, {}
  for _, key in ipairs(dict.changed) do
    local before, entry = dict.stored[key], dict.entries[key]
    if before and before.expires_at then
      table.insert(ending, sortable(before.expires_at) .. key)
    end
    if entry then
      entry.key = nil -- it is the name of the field
      table.insert(kept, key)
      table.insert(kept, cmsgpack.pack(entry))
      entry.key = key
      table.insert(entering, 0)
      table.insert(entering, key)
    else
      table.insert(gone, key)
      table.insert(leaving, key)
    end
    if entry and entry.expires_at then
      table.insert(starting, 0)
      table.insert(starting, sortable(entry.expires_at) .. key)
    end
  end
  call_with("ZREM", dict.key .. ":expiries", ending)
  call_with("ZADD", dict.key .. ":expiries", starting)
  call_with("HDEL", dict.key .. ":entries", gone)
  call_with("ZREM", dict.key .. ":order", leaving)
  call_with("HSET", dict.key .. ":entries", kept)
  call_with("ZADD", dict.key .. ":order", entering)
end

local function write_dict(dict)
  if dict.is_cleared then
    for _, part in ipairs({ "entries", "order", "expiries" }) do
      call("UNLINK", dict.key .. ":" .. part)
    end
  end
  write_entries(dict)
  for key, fence in pairs(dict.fences) do
    call("HSET", dict.key .. ":fences", key, text(fence))
  end
  write_settings(dict)
end

writers[#writers + 1] = function()
  for _, dict in pairs(dicts) do
    write_dict(dict)
  end
end
