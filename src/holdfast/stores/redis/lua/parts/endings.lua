--- How claims end other than done: back in line, given way to a buffered copy, buried, or moved to a dead-letter queue.
--
-- Settle ends claims because their holder says so, Claim because their time is up, Move by hand; what follows is the same.
-- @include line
-- @include ending

--- What will become of messages of one queue whose claims end; a check fills it in, `end_claims` carries it out.
local function plan_endings(queue, messages)
  load_keys(queue, keys_of(messages))
  return { queue = queue, back = {}, gone = {}, dead = {}, moved = {}, keys = {}, heads = {}, held = {} }
end

local OPPOSITE = { back = "front", front = "back", place = "place" }

--- Where a message goes that is no longer held; `back` is the moment that the back of the line means.
--
-- In a strict group each keeps its place, and where the last comes first, the back of the line is its front.
local function position_after(endings, message, return_to, back, delay)
  local policy = policy_of(endings.queue)
  if policy.groups == "strict" then
    return_to = "place"
  elseif policy.order == "lifo" then
    return_to = OPPOSITE[return_to]
  end
  if return_to ~= "front" then
    return position_behind(message, return_to, back, delay)
  end
  local priority = message.priority or 0
  if endings.heads[priority] == nil then
    endings.heads[priority] = head_position(endings.queue, priority) or false
  end
  local head = endings.heads[priority]
  return (head and math.min(head - 1, now) or now) + delay
end

--- Plan the way back into the line, unless a buffered copy takes the place.
local function plan_release(endings, message, position, ending, failed)
  if message.key and copy_of(endings.queue, message.key) then
    table.insert(endings.gone, message)
    table.insert(endings.keys, message.key)
  else
    table.insert(endings.back, { message = message, position = position, ending = ending, failed = failed })
  end
end

--- Plan a burial: here, or in the dead-letter queue `place`. A strict group is paused for it, where the queue says so.
local function plan_burial(endings, message, place, ending, failed)
  table.insert(endings.keys, message.key)
  local policy, lane = policy_of(endings.queue), message.lane
  if lane and policy.groups == "strict" and policy.group_dead == "hold" and not endings.holds_nobody then
    if not endings.held[lane] then
      table.insert(endings.held, lane)
    end
    endings.held[lane] = message.id
  end
  local list = (place == nil or place == endings.queue.name) and endings.dead or endings.moved
  table.insert(list, { message = message, place = place, ending = ending, failed = failed })
end

--- The id under which a message can enter another queue: its own, or one that is free, so that neither is lost.
local function free_id(queue, id)
  local name, number = id, 1
  load_messages(queue, { name })
  while queue.messages[name] do
    number = number + 1
    name = id .. "~" .. number
    load_messages(queue, { name })
  end
  return name
end

--- A message as it arrives in its dead-letter queue: fresh work, with a letter that says where it came from and why.
local function dead_letter_of(queue, one)
  local message = one.message
  remember(message, one.ending, one.failed)
  return {
    id = free_id(open_queue(one.place), message.id),
    n = message.n,
    priority = message.priority,
    position = now,
    created_at = message.created_at,
    metadata = message.metadata,
    labels = message.labels,
    group = message.group,
    letter = {
      queue = queue.name,
      attempts = message.attempts or 0,
      failures = message.failures or 0,
      error = message.last_error,
      at = now + wall_offset,
      key = message.key,
    },
  }
end

--- Move the buried to their dead-letter queues; answer, a queue at a time, what left and what arrived.
local function write_moved(endings)
  local places, by_place, leaving = {}, {}, {}
  for i, one in ipairs(endings.moved) do
    leaving[i] = one.message
    if not by_place[one.place] then
      by_place[one.place] = { left = {}, arrived = {} }
      places[#places + 1] = one.place
    end
    table.insert(by_place[one.place].left, one.message)
  end
  local values = values_of(endings.queue, leaving)
  for i, one in ipairs(endings.moved) do
    local place, letter = open_queue(one.place), dead_letter_of(endings.queue, one)
    create(place)
    add(place, letter)
    place.values[letter.id] = values[i]
    table.insert(by_place[one.place].arrived, letter)
  end
  remove(endings.queue, leaving)
  for _, name in ipairs(places) do
    announce(open_queue(name), by_place[name].arrived)
  end
  return places, by_place
end

--- Pause the strict groups whose messages died, and tell of it.
local function hold_groups(endings)
  local queue = endings.queue
  for _, name in ipairs(endings.held) do
    local lane, id = rules_of(queue).lane(queue, name), endings.held[name]
    lane.own = cmsgpack.unpack(cmsgpack.pack(lane.own))
    lane.own.paused, lane.own.held = true, id
    rules_of(queue).touch(queue, name, 0)
    tell(queue, "configured", { group = name, paused = true, because = "dead", held = id })
  end
end

--- Carry the endings out. Answers a function that tells of the burials, for events come in an order of their own.
local function end_claims(endings)
  local queue = endings.queue
  local back, dead = {}, {}
  remove(queue, endings.gone)
  for i, one in ipairs(endings.back) do
    change_state(queue, one.message, "ready")
    one.message.position = one.position
    remember(one.message, one.ending, one.failed, endings.trace)
    back[i] = one.message
  end
  for i, one in ipairs(endings.dead) do
    change_state(queue, one.message, "dead")
    one.message.dead_at = now
    remember(one.message, one.ending, one.failed, endings.trace)
    dead[i] = one.message
  end
  local places, by_place = write_moved(endings)
  promote(queue, endings.keys)
  announce(queue, back)
  return function()
    if #dead > 0 then
      tell(queue, "buried", told(dead))
    end
    hold_groups(endings)
    for _, name in ipairs(places) do
      tell(queue, "buried", told(by_place[name].left, { dead_letter = name }))
      tell(open_queue(name), "put", told(by_place[name].arrived))
    end
  end
end
