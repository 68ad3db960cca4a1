--- Fences: list the fences of keys, deleted ones too, by dict and key, page by page.
--
-- KEYS  1 the store
-- ARGV  1 the command: after {dict, key}, limit
--       2 ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers a list of {dict, key, fence}. Costs by how many fences the dicts of the page have.
-- @include copying

local fences = {}

--- The fences of one dict behind a key, by key.
local function fences_behind(name, after, found, limit)
  local keys = call("HKEYS", key_of("dict", name) .. ":fences")
  table.sort(keys)
  for _, key in ipairs(keys) do
    if #found >= limit then
      return
    end
    if after == nil or key > after then
      found[#found + 1] = { name, key, tonumber(call("HGET", key_of("dict", name) .. ":fences", key)) }
    end
  end
end

function fences.check(command)
  local name, key = command.after[1], command.after[2]
  local found = {}
  if name ~= "" then
    fences_behind(name, key, found, command.limit)
  end
  for _, member in ipairs(call("ZRANGEBYLEX", store .. ":logs", "(dict:" .. name, "(dict:" .. AFTER_ALL)) do
    if #found >= command.limit then
      break
    end
    fences_behind(string.sub(member, 6), nil, found, command.limit)
  end
  return found
end

function fences.write(_, plan)
  return plan
end

commands.Fences = fences
