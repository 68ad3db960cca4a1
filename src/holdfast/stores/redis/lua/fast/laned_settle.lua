--- What fast settle makes of claims that have used a slot of their group, or whose group is to be told; they are done.
-- @include lanes

--- The position of the first message of a lane, nil for none.
local function head_position(name, policy)
  local queue = KEYS[2]
  local member = call("ZRANGEBYLEX", queue .. ":lanes", "[" .. name .. "\0", "(" .. name .. "\1", "LIMIT", "0", "1")[1]
  if not member or policy.groups ~= "strict" then
    return member and 0
  end
  local id = string.sub(member, #name + 23)
  local records = call("HMGET", queue .. ":messages", id, id .. "\0")
  return cmsgpack.unpack(records[2] or records[1]).position
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
  local policy, opened, freed = cmsgpack.unpack(call("HGET", KEYS[2], "policy")), 0, {}
  for i, packed in ipairs(call("HMGET", KEYS[2] .. ":lane", unpack(names))) do
    local lane = lanes.read(names[i], packed)
    local was_open, woke = lane.open, lane.wakes
    lane.live = math.max(lane.live - used[names[i]], 0)
    lanes.refresh(lane, policy, head_position(names[i], policy), number)
    freed[i] = lane
    opened = opened + ((lanes.is_sooner(lane, woke) or (lane.open and not was_open)) and 1 or 0)
  end
  lanes.save(KEYS[2], freed)
  return opened
end
