--- What fast put knows of lanes.
-- @include lanes

--- The lanes of items, by name, each with how many arrive; nothing where the full rules must decide: something is not due, or the head of a
-- strict group that waits for its moment.
local function lanes_of(ids, options, policy)
  local arrivals, names, found = {}, {}, {}
  for i = 1, #ids do
    local said = options[i] or options[1]
    local name = policy.groups and said.kept and said.kept.group or ""
    if (said.delay or 0) > 0 or said.at or (not policy.groups and said.start_within) then
      return nil
    end
    if not arrivals[name] then
      names[#names + 1] = name
    end
    arrivals[name] = (arrivals[name] or 0) + 1
  end
  if not policy.groups then
    return found
  end
  for i, packed in ipairs(call("HMGET", KEYS[2] .. ":lane", unpack(names))) do
    local lane = lanes.read(names[i], packed)
    local limit = lanes.limit_of(lane, policy)
    lane.arrivals = arrivals[names[i]]
    -- Whoever settles or resumes it opens it.
    lane.stays = lane.turn ~= 0 and (lane.open or lane.own.paused or (limit and lane.live >= limit))
    if policy.groups == "strict" and lane.turn ~= 0 and not lane.stays then
      return nil
    end
    found[i] = lane
  end
  return found
end

--- The fields and the place that a lane gives its messages with these options.
function pack_lane(policy, kept)
  local name = policy.groups and kept and kept.group or ""
  local level, rank = lanes.place_of(policy, kept or {}, now)
  local fields, count = cmsgpack.pack("lane", name, "rank", rank), 2
  if level ~= 0 then
    fields, count = fields .. cmsgpack.pack("level", level), 3
  end
  return name .. "\0" .. lane_place(level, rank), fields, count
end

--- Bring the lanes up to date; answer how many waiters may find something.
function join_lanes(found, policy, number)
  local count, refreshed = 0, {}
  for _, lane in ipairs(found) do
    local woke = lane.wakes
    if not lane.stays then
      lanes.refresh(lane, policy, 0, number)
      refreshed[#refreshed + 1] = lane
    end
    -- Who waits must learn of a moment, too, before which a rate or a throttle lets nothing through.
    count = count + (lane.open and lane.arrivals or (lanes.is_sooner(lane, woke) and 1 or 0))
  end
  lanes.save(KEYS[2], refreshed)
  return count
end
