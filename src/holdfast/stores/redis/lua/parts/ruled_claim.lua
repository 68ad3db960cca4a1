--- A claim on a queue with lanes, a limit, a rate, a history or a throttle: it sweeps, and then takes from the queue as that stands by then.
-- It is part of claim.lua. `ruled` is given.

local TIDIED = {{SWEEP}} -- so many lanes that give nothing a claim passes beyond as many messages as it may hand out

--- What time has overtaken comes back, goes, or joins its line; answer how many that were.
local function sweep(command, queue)
  local swept
  if command.key then
    swept = select(2, key_line(queue, command.key))
  else
    swept = overdue(queue, command.limit + SWEEP)
  end
  local plan = { expired = {}, late = {} }
  for _, message in ipairs(swept) do
    if message.state == "leased" or is_late(message) then
      table.insert(message.state == "leased" and plan.expired or plan.late, message)
    else
      touch(queue, message)
      queue.joins[message] = "due"
    end
  end
  plan.endings = expire(command, queue, plan.expired)
  local number = numbers.latest()
  write_sweep(command, queue, plan)
  flush(queue, number)
  return #swept
end

--- Refresh lanes whose moment has come; answer how many.
local function wake_lanes(command, queue)
  local names = call("ZRANGEBYSCORE", queue.key .. ":asleep", "-inf", text(now), "LIMIT", "0", command.limit + TIDIED)
  for _, name in ipairs(names) do
    rules.refresh(queue, name, numbers.latest(), 0)
  end
  return #names
end

--- How many messages the limit and the rate of the queue let through.
--
-- Answers also whether it is the rate that lets nothing through.
local function room_of(command, queue)
  local settings, policy, room = settings_of(queue), policy_of(queue), command.limit
  if policy.limit and not command.take then
    room = math.min(room, policy.limit - settings.live)
  end
  if room <= 0 or not policy.rate then
    return math.max(room, 0), false
  end
  room = math.min(room, rules.lanes.allowed(settings.tat, policy.rate))
  return room, room == 0
end

--- How many messages a lane may give now.
local function most_of(command, lane, policy, room)
  local limit, rate = rules.lanes.limit_of(lane, policy), rules.lanes.rate_of(lane, policy)
  local most = room
  if limit and (not command.take or policy.groups == "strict") then
    most = math.min(most, limit - lane.live)
  end
  return rate and math.min(most, rules.lanes.allowed(lane.tat, rate)) or most
end

--- Bring as many messages of a lane as wanted into `line`, but for those too late to be started.
local function fetch(queue)
  return function(lane, wanted)
    while #lane.line < wanted and not lane.is_read do
      local members = rules.line_members(queue, lane.name, lane.behind, wanted - #lane.line)
      lane.is_read = #members < wanted - #lane.line
      lane.behind = members[#members] or lane.behind
      local ids = {}
      for i, member in ipairs(members) do
        ids[i] = string.sub(member, #lane.name + rules.ID_AT)
      end
      for _, message in ipairs(pick(queue, ids)) do
        if not is_late(message) then
          lane.line[#lane.line + 1] = message
        end
      end
    end
  end
end

--- The first of the messages that the answer takes.
local function taken_by_answer(queue, messages)
  local found = {}
  for i, message in ipairs(messages) do
    if not bring(message_bytes(queue, message)) then
      break
    end
    found[i] = message
  end
  return found
end

--- Give a lane another look at its line.
local function begin_lane(command, queue, name, room)
  local lane, policy = rules.lane(queue, name), policy_of(queue)
  lane.line, lane.is_read, lane.behind = {}, false, nil
  lane.most = most_of(command, lane, policy, room)
  if lane.most > 0 then
    fetch(queue)(lane, 1)
  end
  return lane
end

--- The first open lanes that have something to give; those that have nothing are refreshed and passed. Answers also whether there may be
-- more behind those that were passed.
local function open_lanes(command, queue, room)
  local served, passed, at = {}, 0, 0
  while #served < room do
    local member = call("ZRANGE", queue.key .. ":open", at, at)[1]
    local name = member and rules.lanes.name_in(member)
    if not name then
      return served, false
    elseif passed >= command.limit + TIDIED then
      return {}, true
    end
    local lane = begin_lane(command, queue, name, room)
    if lane.most > 0 and #lane.line > 0 then
      served[#served + 1], at = lane, at + 1
    else
      rules.refresh(queue, name, numbers.latest(), 0)
      passed = passed + 1
      at = at + (lane.open and 1 or 0)
    end
  end
  return served, false
end

--- The first messages in line, as the queue orders them, that the answer takes, and the lanes that gave them.
local function choose_open(command, queue, room)
  local served, is_cut = open_lanes(command, queue, room)
  local order = rules.lanes.share_out(served, room, fetch(queue))
  local function chosen_of()
    local chosen = {}
    for i, one in ipairs(order) do
      chosen[i] = one[1].line[one[2]]
    end
    return chosen
  end
  local chosen = taken_by_answer(queue, chosen_of())
  if #chosen < #order then
    rules.lanes.share_out(served, #chosen, fetch(queue))
  end
  return chosen, { served = served, is_cut = is_cut, is_shared = true }
end

--- The first of the one line of a queue without groups.
local function choose_first(_, queue, room)
  if settings_of(queue).ruled ~= "lanes" then
    return taken_by_answer(queue, heads(queue, room))
  end
  local lane = { name = "", line = {} }
  fetch(queue)(lane, room)
  while #lane.line > room do
    lane.line[#lane.line] = nil
  end
  return taken_by_answer(queue, lane.line)
end

--- The message under a key, if its group may give it now.
local function choose_key(command, queue)
  local message = key_line(queue, command.key)[1]
  local policy = policy_of(queue)
  if not message then
    return {}
  end
  if policy.groups then
    local lane = begin_lane(command, queue, message.lane, 1)
    local is_next = policy.groups ~= "strict" or lane.line[1] == message
    if not lane.open or lane.most < 1 or not is_next then
      return {}
    end
    lane.given = 1
    return taken_by_answer(queue, { message }), { served = { lane } }
  end
  return taken_by_answer(queue, { message })
end

--- What the end of the claim of a message has to do.
local function tie(command, policy, message, lane)
  local tied = message.group and {{TOLD_GROUP}} or 0
  tied = tied + (policy.keep_done_s and {{KEPT_WHEN_DONE}} or 0)
  if not command.take then
    tied = tied + (lane and rules.lanes.limit_of(lane, policy) and {{SLOT_OF_GROUP}} or 0) + (policy.limit and {{SLOT_OF_QUEUE}} or 0)
  end
  message.tied = tied > 0 and tied or nil
end

--- Whether claiming ahead of need takes something away from others.
local function is_careful(policy)
  return policy.limit or policy.rate or policy.group_limit or policy.group_rate or policy.groups == "strict"
end

--- Note what a claim uses of limits and rates.
local function use(command, queue, chosen, turns, token)
  local settings, policy = settings_of(queue), policy_of(queue)
  local careful = is_careful(policy)
  for _, lane in ipairs(turns and turns.served or {}) do
    local rate, limit = rules.lanes.rate_of(lane, policy), rules.lanes.limit_of(lane, policy)
    careful = careful or (lane.given > 0 and (rate or limit))
    if turns.is_shared and lane.given > 0 then
      rules.lanes.take_turn(lane, token)
    end
    if limit and not command.take then
      lane.live = lane.live + lane.given
    end
    if rate and lane.given > 0 then
      lane.tat, lane.last = rules.lanes.used(lane.tat, rate, lane.given), token
    end
    rules.touch(queue, lane.name, 0)
  end
  if policy.limit and not command.take then
    settings.live, queue.has_new_gate = settings.live + #chosen, true
  end
  if policy.rate then
    settings.tat, settings.last, queue.has_new_gate = rules.lanes.used(settings.tat, policy.rate, #chosen), token, true
  end
  return careful and true or nil
end

--- When time alone will make something claimable.
local function moment_due(command, queue, is_paced)
  local settings, policy = settings_of(queue), policy_of(queue)
  if is_paced then
    return rules.lanes.free_at(settings.tat, policy.rate)
  end
  local under_key = command.key and key_due(queue, command.key) or 0
  if under_key > now then
    return under_key
  end
  local asleep = call("ZRANGEBYSCORE", queue.key .. ":asleep", "(" .. text(now), "+inf", "WITHSCORES", "LIMIT", "0", "1")
  return math.min(next_due(queue) or NEVER, tonumber(asleep[2] or NEVER))
end

--- Hand messages out.
local function hand_out(command, queue, chosen, turns)
  local values, policy, lane_of = values_of(queue, chosen), policy_of(queue), {}
  for _, lane in ipairs(turns and turns.served or {}) do
    lane_of[lane.name] = lane
  end
  local token = tell(queue, "claimed", told(chosen, { holder = command.holder }))
  local answer = { messages = {}, values = values, careful = use(command, queue, chosen, turns, token) }
  for i, message in ipairs(chosen) do
    change_state(queue, message, "leased")
    message.holder, message.token, message.since = command.holder, token, now
    message["until"], message.expired_to = end_of_claim(command, queue), command.expired_to
    message.attempts = (message.attempts or 0) + 1
    tie(command, policy, message, lane_of[message.lane])
    answer.messages[i] = copied(message)
  end
  make_room(queue, #chosen)
  if not command.take then
    return answer, { token = token, ids = ids_of(chosen) }
  end
  if policy.keep_done_s then
    rules.keep_done(queue, chosen)
  else
    remove(queue, chosen)
  end
  promote(queue, keys_of(chosen))
  return answer, { messages = answer.messages, values = values }
end

function ruled.write(command, queue)
  local settings = settings_of(queue)
  rules_of(queue)
  flush(queue)
  local nothing = { messages = {}, values = {}, careful = is_careful(policy_of(queue)) and true or nil }
  if settings.paused then
    return nothing, { ids = {} }
  elseif settings.throttled_until > now then
    nothing.due_in = settings.throttled_until - now
    return nothing, { ids = {} }
  elseif settings.throttled_until > 0 then
    settings.throttled_until, queue.is_configured = 0, true
  end
  local swept = sweep(command, queue)
  swept = math.max(swept, policy_of(queue).groups and wake_lanes(command, queue) or 0)
  local chosen, turns = {}, nil
  local room, is_paced = room_of(command, queue)
  if room > 0 then
    local choose = command.key and choose_key or policy_of(queue).groups and choose_open or choose_first
    chosen, turns = choose(command, queue, room)
  end
  if #chosen > 0 then
    return hand_out(command, queue, chosen, turns)
  end
  if policy_of(queue).keep_done_s then
    rules.prune_done(queue, SWEEP, {})
  end
  local is_cut = swept >= command.limit + SWEEP or (turns and turns.is_cut)
  local due = is_cut and now or moment_due(command, queue, is_paced)
  nothing.due_in = due < NEVER and math.max(0, due - now) or nil
  return nothing, { ids = {} }
end
