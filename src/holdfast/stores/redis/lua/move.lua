--- Move: redrive (`ready`), bury (`dead`) or remove (`gone`) messages, by id or by state and filter, or end their delay (`due`); those somebody
-- holds stay.
--
-- KEYS  1 the store  2 the queue  3 the queue to redrive into, if another
-- ARGV  1 the command: queue, to and ids, or state, which (see Filter), after, limit; to_queue, delay, spacing,
--         error
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers ids and, by id, what was taken where a redriven message would have gone: kept; and where to go on behind those that no ids named.
-- @include browsing
-- @include endings

local move = {}

--- Where redriven messages go; one stays while another message of its key is alive, or its id is taken, where it would go.
local function plan_redrive(command, queue, messages)
  local target = open_queue(command.to_queue or command.queue)
  load_messages(target, ids_of(messages))
  load_keys(target, keys_of(messages))
  local plan, kept, lives = { messages = {}, positions = {} }, {}, {}
  for _, message in ipairs(messages) do
    local id, key = message.id, message.key
    if target ~= queue and target.messages[id] then
      kept[id] = "id"
    elseif key and (lives[key] or (live_of(target, key) or message).id) ~= id then
      kept[id] = "key"
    else
      local position = now + command.delay + command.spacing * #plan.positions
      table.insert(plan.messages, message)
      table.insert(plan.positions, math.min(position, LAST - 1))
      if key then
        lives[key] = id
      end
    end
  end
  plan.kept = next(kept) and kept -- An empty table would be packed as a list.
  return plan
end

local function plan_burials(command, queue, messages)
  local endings = plan_endings(queue, messages)
  endings.holds_nobody = true -- for what an administrator buries
  for _, message in ipairs(messages) do
    plan_burial(endings, message, message.dead_letter, ending_of(message, now, "buried", command.error), false)
  end
  return { messages = messages, endings = endings }
end

--- Those of the messages that the move is about.
local function free_of(command, found)
  local free = {}
  for _, message in ipairs(found) do
    local state = state_of(message)
    local fits = command.to == "gone"
      or (command.to == "ready" and state ~= "buffered")
      or (command.to == "dead" and (state == "ready" or state == "leased"))
      or (command.to == "due" and state == "ready" and message.position > now)
    if fits and not is_held(message) then
      free[#free + 1] = message
    end
  end
  return free
end

local function plan_move(command, queue, free)
  if command.to == "ready" then
    return plan_redrive(command, queue, free)
  elseif command.to == "dead" then
    return plan_burials(command, queue, free)
  end
  return { messages = free }
end

function move.check(command)
  local queue = open_queue(command.queue)
  local found, after
  if command.ids then
    found = pick(queue, command.ids)
  else
    found, after = browse_state(walk_of(queue, command.which), command.state, command.after, command.limit)
  end
  local plan = plan_move(command, queue, free_of(command, found))
  plan.after = after
  return plan
end

--- A message given another chance, here or in another queue, with its id, its history and a fresh budget.
local function redrive(queue, target, message, position, value)
  local next_one = message
  if target ~= queue then
    next_one = {}
    for field, content in pairs(message) do
      next_one[field] = content
    end
    remove(queue, { message })
    next_one.state, next_one.lane, next_one.level, next_one.rank = nil, nil, nil, nil -- ready, and nowhere yet
    next_one.tied = nil
    target.values[message.id] = value
  else
    change_state(queue, message, "ready")
  end
  next_one.position, next_one.failures, next_one.dead_at, next_one.ended_at = position, nil, nil, nil
  if target ~= queue then
    add(target, next_one)
  end
  return next_one
end

local function write_redrive(command, queue, plan)
  local target = open_queue(command.to_queue or command.queue)
  local values = target ~= queue and values_of(queue, plan.messages) or {}
  local moved = {}
  create(target)
  for i, message in ipairs(plan.messages) do
    moved[i] = redrive(queue, target, message, plan.positions[i], values[i])
  end
  announce(target, moved)
  if target ~= queue then
    tell(target, "put", told(moved))
  end
end

local function end_delays(queue, messages)
  for _, message in ipairs(messages) do
    touch(queue, message)
    message.position = now
  end
  announce(queue, messages)
end

--- Let strict groups go on that were paused for one of these messages.
local function resume_groups(queue, messages)
  local found = rules_of(queue)
  for _, message in ipairs(found and messages or {}) do
    local lane = message.state == "dead" and message.lane and found.lane(queue, message.lane)
    if lane and lane.own.held == message.id then
      lane.own = cmsgpack.unpack(cmsgpack.pack(lane.own))
      lane.own.held, lane.own.paused = nil, nil
      found.touch(queue, lane.name, 0)
      tell(queue, "configured", { group = lane.name, paused = false })
    end
  end
end

function move.write(command, plan)
  if #plan.messages == 0 then
    return { ids = {}, kept = plan.kept, after = plan.after }
  end
  local queue = open_queue(command.queue)
  local ids = ids_of(plan.messages)
  tell(queue, "moved", told(plan.messages, { to = command.to }))
  if command.to == "due" then
    end_delays(queue, plan.messages)
    return { ids = ids }
  end
  local was_ready = 0
  for _, message in ipairs(plan.messages) do
    was_ready = was_ready + (state_of(message) == "ready" and 1 or 0)
  end
  make_room(queue, was_ready)
  if command.to ~= "dead" then
    resume_groups(queue, plan.messages)
  end
  if command.to == "gone" then
    remove(queue, plan.messages)
    promote(queue, keys_of(plan.messages))
  elseif command.to == "ready" then
    write_redrive(command, queue, plan)
  else
    end_claims(plan.endings)()
  end
  return { ids = ids, kept = plan.kept, after = plan.after }
end

commands.Move = move
