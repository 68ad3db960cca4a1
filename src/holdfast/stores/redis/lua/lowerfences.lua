--- LowerFences: lower the fences of a dict that stand above the newest token to it.
--
-- KEYS  1 the store  2 the dict
-- ARGV  1 the command: dict, limit  2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers how many. Costs by how many fences the dict has.
-- @include dict

local lowerfences = {}

function lowerfences.check(command)
  local fences = call("HGETALL", key_of("dict", command.dict) .. ":fences")
  -- 0 would be no fence; the first token is 1 at least.
  local plan = { newest = math.max(numbers.latest(), 1), keys = {} }
  for i = 1, #fences, 2 do
    if #plan.keys < command.limit and tonumber(fences[i + 1]) > plan.newest then
      plan.keys[#plan.keys + 1] = fences[i]
    end
  end
  return plan
end

function lowerfences.write(command, plan)
  local dict = open_dict(command.dict)
  load_entries(dict, plan.keys)
  for _, key in ipairs(plan.keys) do
    dict.fences[key] = plan.newest
    local entry = entry_of(dict, key)
    if entry then
      entry.fence = plan.newest
      save_entry(dict, key, entry)
    end
  end
  return #plan.keys
end

commands.LowerFences = lowerfences
