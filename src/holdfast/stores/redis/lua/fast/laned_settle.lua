--- What fast settle makes of claims that have used a slot of their group, or whose group is to be told; they are done.
-- @include lanes

--- The positions of the first messages of lanes, nil where there is none; they count in strict groups alone, and are 0 in others.
local function head_positions(found, policy)
  local queue, heads, fields, asked = KEYS[2], {}, {}, {}
  for i, lane in ipairs(found) do
    local member, is_strict = nil, policy.groups == "strict"
    -- What is open has a first message.
    if is_strict or not lane.open then
      member = call("ZRANGEBYLEX", queue .. ":lanes", "[" .. lane.name .. "\0", "(" .. lane.name .. "\1", "LIMIT", "0", "1")[1]
    end
    heads[i] = (member or (lane.open and not is_strict)) and 0 or nil
    if member and is_strict then
      local id = string.sub(member, #lane.name + 23)
      asked[#asked + 1], fields[#fields + 1], fields[#fields + 2] = i, id, id .. "\0"
    end
  end
  local records = #fields > 0 and call("HMGET", queue .. ":messages", unpack(fields))
  for place, i in ipairs(asked) do
    heads[i] = cmsgpack.unpack(records[2 * place] or records[2 * place - 1]).position
  end
  return heads
end

--- The groups of claims, false for none, and the lanes of those that have used a slot, each with how many; nothing where the full rules must
-- decide.
local function read_ties(records)
  local groups, has_groups, used, names = {}, false, {}, {}
  for i = 1, #records do
    local claim = cmsgpack.unpack(records[i])
    local tied = claim.tied or 0
    if bit.band(tied, {{SLOT_OF_QUEUE}} + {{KEPT_WHEN_DONE}}) > 0 or claim.key or not claim.lane then
      return nil
    elseif bit.band(tied, {{TOLD_GROUP}}) > 0 and claim.lane == "" then
      return nil -- The queue has one lane for all groups.
    end
    groups[i] = bit.band(tied, {{TOLD_GROUP}}) > 0 and claim.lane
    has_groups = has_groups or groups[i]
    if bit.band(tied, {{SLOT_OF_GROUP}}) > 0 then
      if not used[claim.lane] then
        names[#names + 1] = claim.lane
      end
      used[claim.lane] = (used[claim.lane] or 0) + 1
    end
  end
  return groups, has_groups, used, names
end

--- Whether time has overtaken somebody who has to be started in time: the full rules pass such heads over.
local function has_late()
  return call("ZLEXCOUNT", KEYS[2] .. ":late", "-", "(" .. struct.pack(NUMBER, now + 1)) > 0
end

--- Give the slots back; answer how many lanes give something by that, now or sooner than before.
function free_slots(used, names, number)
  local policy, found, opened = cmsgpack.unpack(call("HGET", KEYS[2], "policy")), {}, 0
  for i, packed in ipairs(call("HMGET", KEYS[2] .. ":lane", unpack(names))) do
    found[i] = lanes.read(names[i], packed)
    found[i].live = math.max(found[i].live - used[names[i]], 0)
  end
  local heads = head_positions(found, policy)
  for i, lane in ipairs(found) do
    local was_open, woke = lane.open, lane.wakes
    lanes.refresh(lane, policy, heads[i], number)
    opened = opened + ((lanes.is_sooner(lane, woke) or (lane.open and not was_open)) and 1 or 0)
  end
  lanes.save(KEYS[2], found)
  return opened
end
