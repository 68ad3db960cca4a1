--- What fast claim takes from the lanes of a queue.
-- @include ready_place

--- Bring as many members of a lane's line as wanted into `line`, and one more: whether there is one decides where the lane stands.
local function fetch(lane, wanted)
  if #lane.line <= wanted and not lane.is_read then
    local behind = lane.line[#lane.line]
    local from = behind and "(" .. behind or "[" .. lane.name .. "\0"
    local asked = wanted + 1 - #lane.line
    local members = call("ZRANGEBYLEX", KEYS[2] .. ":lanes", from, "(" .. lane.name .. "\1", "LIMIT", "0", asked)
    lane.is_read = #members < asked
    for i = 1, #members do
      lane.line[#lane.line + 1] = members[i]
    end
  end
end

--- The lanes that give something, and which of their members; nothing where one of them has nothing to give.
local function choose(names, policy)
  local served, limit = {}, command.limit
  for i, member in ipairs(names) do
    names[i] = lanes.name_in(member)
  end
  for i, packed in ipairs(call("HMGET", KEYS[2] .. ":lane", unpack(names))) do
    local lane = lanes.read(names[i], packed)
    local most, rate = lanes.limit_of(lane, policy), lanes.rate_of(lane, policy)
    lane.line, lane.most = {}, most and most - lane.live or limit
    lane.most = rate and math.min(lane.most, lanes.allowed(lane.tat, rate)) or lane.most
    if lane.most < 1 then
      return nil
    end
    served[i] = lane
  end
  local order = lanes.share_out(served, limit, fetch)
  for _, lane in ipairs(served) do
    if lane.given == 0 then
      return nil
    end
  end
  return served, order
end

--- Where messages stand among the ready, as their records say.
local function ready_members(chosen)
  local members = {}
  for i, record in ipairs(chosen.records) do
    members[i] = ready_place(cmsgpack.unpack(record)) .. chosen.ids[i] .. "\0"
  end
  return members
end

--- What the end of the claim of a message of a lane has to do.
local function tied_of(lane, policy, group)
  return (group and {{TOLD_GROUP}} or 0) + (lanes.limit_of(lane, policy) and {{SLOT_OF_GROUP}} or 0)
end

local KEY, ATTEMPTS = "\163key", "\168attempts" -- how the fields begin; another place where they stand is taken for one, which does no harm

--- The messages of these places: how they were put and what became of them; nothing where the full rules must decide.
--
-- `ready` is where they stand among the ready if that is the place of their lane, which it is unless they were returned to a strict group, or
-- put when the queue had other policies. Those that may be late, have a key, or were claimed
-- in another queue before they came here are not taken for fresh.
local function read_chosen(order, policy, may_be_late)
  local chosen = { ids = {}, ns = {}, members = {}, ready = {}, lanes = {}, groups = {}, stale = {}, later = {}, records = {} }
  local fields, count = {}, #order
  for i = 1, count do
    local lane = order[i][1]
    local member, at = lane.line[order[i][2]], #lane.name + 2
    local id, group = string.sub(member, at + 21), lane.name ~= "" and lane.name
    local tied = tied_of(lane, policy, group)
    chosen.tied = chosen.tied == nil and tied or (chosen.tied == tied and tied)
    chosen.ids[i], chosen.ns[i], chosen.members[i], chosen.lanes[i] = id, string.sub(member, at + 13, at + 20), member, lane.name
    chosen.groups[i], chosen.has_groups = group, chosen.has_groups or group
    chosen.ready[i] = string.sub(member, at, at + 3) .. string.sub(member, at + 5) .. "\0"
    fields[i], fields[count + i] = id, id .. "\0"
  end
  local records
  if count > FEW then
    -- @include fast/read_within
    records = read_within(KEYS[2] .. ":messages", fields, 0)
  else
    records = call("HMGET", KEYS[2] .. ":messages", unpack(fields))
  end
  if not records then
    return nil
  end
  chosen.found = { unpack(records, 1, count) }
  for i = 1, count do
    local put, later = records[i], records[count + i]
    if not put then
      return nil
    elseif later or may_be_late or string.find(put, KEY, 1, true) or string.find(put, ATTEMPTS, 1, true) then
      chosen.stale[#chosen.stale + 1], chosen.later[#chosen.later + 1] = i, later
    end
    chosen.records[i] = later or put
  end
  return chosen
end
