--- Put: add messages to a queue, all or none.
--
-- KEYS  1 the store  2 the queue  3 the dict that remembers which keys were put not long ago, if an item asks for that
-- ARGV  1 the command: queue, ids, values, recent, options (one, or one each): delay, at, start_within, if_ready, if_leased, if_id, at_latest,
--         unique_for, if_recent where they are not the default, and kept: the fields that the message keeps as they are
--       2 its id, or ''  3 the moment, in tests  4 the offset of the wall clock, in tests
-- Answers ids and created, an item each, or true: all were created.
-- @include queue
-- @include moments

local put = {}

--- Where each item of a put goes, worked out one after the other as if each were put alone.
local function look_up(queue, items)
  local ids, keys = {}, {}
  for i, item in ipairs(items) do
    ids[i] = item.id
    keys[#keys + 1] = item.key
  end
  load_messages(queue, ids)
  load_keys(queue, keys)
  local placement = { ids = {}, created = {}, added = {}, added_by_id = {}, updated = {}, late = {}, live = {}, copies = {}, begun = {} }
  for _, key in ipairs(keys) do
    local live = live_of(queue, key)
    if live and is_late(live) then
      -- Too late to be started: it swallows no new work.
      if placement.live[key] == nil then
        table.insert(placement.late, live)
      end
      live = nil
    end
    placement.live[key] = live or false
    placement.copies[key] = copy_of(queue, key) or false
  end
  table.sort(placement.late, function(one, other)
    return one.n < other.n
  end)
  return placement
end

local function answer(placement, id, created)
  table.insert(placement.ids, id)
  table.insert(placement.created, created)
end

local function new_message(item)
  local message = { id = item.id, created_at = now }
  for field, content in pairs(item.kept) do
    message[field] = content
  end
  message.position, message.start_by = moments_of(item.options)
  return message
end

local function place_new(placement, message, item)
  local one = { message = message, value = item.value }
  if item.options.unique_for then
    placement.begun[message.key] = { id = message.id, ttl = item.options.unique_for, place = #placement.ids }
  end
  table.insert(placement.added, one)
  placement.added_by_id[message.id] = one
  if message.key then
    (message.state == "buffered" and placement.copies or placement.live)[message.key] = message
  end
  answer(placement, message.id, true)
end

--- Give a message what a put that updates it changes besides the value.
local function set_given(message, kept)
  for _, name in ipairs({ {{UPDATED}} }) do
    message[name] = kept[name]
  end
end

--- Let a message be due at another moment, but not later than the item says; the time in which it has to be started moves along.
local function postpone(message, item)
  local was_at = message.position
  message.position = moments_of(item.options)
  if item.options.at_latest then
    message.position = math.min(message.position, message.created_at + item.options.at_latest)
  end
  message.start_by = message.start_by and math.min(message.start_by + message.position - was_at, LAST)
end

--- Put a new value into a message that is there, or that this put adds.
local function place_update(placement, message, item)
  local one = placement.added_by_id[message.id]
  local moves = item.options.if_ready == "postpone" and state_of(message) == "ready"
  if one then
    one.value = item.value
    set_given(message, item.kept)
    if moves then
      postpone(message, item)
    end
  else
    if not placement.updated[message.id] then
      placement.updated[message.id] = { message = message }
      table.insert(placement.updated, placement.updated[message.id])
    end
    local change = placement.updated[message.id]
    change.value, change.kept = item.value, item.kept
    if moves then
      change.moved = change.moved or { position = message.position, start_by = message.start_by, created_at = message.created_at }
      postpone(change.moved, item)
    end
  end
  answer(placement, message.id, false)
end

--- The copy that waits behind another message: of the same lane it is to take its place, else it goes to the back of its own.
local function waiting_behind(queue, first, message)
  local policy = policy_of(queue)
  message.state = "buffered"
  if rules_of(queue) and settings_of(queue).ruled == "lanes" then
    message.lane = policy.groups and message.group or ""
  end
  if message.position <= now and first.lane == message.lane then
    message.position = policy.groups == "strict" and first.rank or first.position
  end
  return message
end

--- The key is taken: the item's policy decides.
local function place_behind(placement, queue, item)
  local first, copy = placement.live[item.key], placement.copies[item.key]
  local held = is_held(first)
  local policy = held and (item.options.if_leased or "buffer") or (not held and (item.options.if_ready or "update"))
  if policy == "reject" then
    refuse("KeyInFlight", { queue = queue.name, key = item.key, held = held })
  elseif policy == "keep" then
    answer(placement, (copy or first).id, false)
  elseif copy or policy == "update" or policy == "postpone" then
    place_update(placement, copy or first, item)
  else
    place_new(placement, waiting_behind(queue, first, new_message(item)), item)
  end
end

--- Refuse an item whose id is taken, if it says so and the value there is another by now.
local function refuse_other_value(placement, queue, item)
  if item.options.if_id ~= "reject" then
    return
  end
  local given = placement.added_by_id[item.id] or placement.updated[item.id]
  local value = given and given.value or values_of(queue, { queue.messages[item.id] })[1]
  if value ~= item.value then
    refuse("IdTaken", { queue = queue.name, message_id = item.id })
  end
end

local recent -- what is known of the keys that were put not long ago
if command.recent or command.commands then
  -- @include recent
end

--- No message of the key is alive: add one, unless the key was put not long ago.
local function place_first(placement, queue, item)
  local known = item.options.unique_for and recent.id_of(placement.recent, item.key)
  if not known then
    place_new(placement, new_message(item), item)
  elseif item.options.if_recent == "reject" then
    refuse("KeyIsRecent", { queue = queue.name, key = item.key })
  else
    answer(placement, known, false)
  end
end

local reserved = {} -- room that earlier commands of the same step will use up, by queue

local function check_room(placement, queue)
  local settings = settings_of(queue)
  if not (settings and settings.maxsize) then
    return
  end
  local wanted = 0
  for _, one in ipairs(placement.added) do
    wanted = wanted + (one.message.state == "buffered" and 0 or 1)
  end
  local used = ready_count(queue) - #placement.late + (reserved[queue.name] or 0)
  if wanted > 0 and used + wanted > settings.maxsize then
    refuse("QueueFull", { queue = queue.name, used = used, maxsize = settings.maxsize, wanted = wanted })
  end
  reserved[queue.name] = (reserved[queue.name] or 0) + wanted
end

--- The items of a put, each with its options: those that all share come once.
local function items_of(command)
  local items = {}
  for i, id in ipairs(command.ids) do
    local options = command.options[i] or command.options[1]
    local kept = options.kept or {}
    items[i] = { id = id, value = command.values[i], key = kept.key, options = options, kept = kept }
  end
  return items
end

function put.check(command)
  local queue, items = open_queue(command.queue), items_of(command)
  local placement = look_up(queue, items)
  placement.recent = command.recent and recent.open(command.recent)
  for _, item in ipairs(items) do
    if queue.messages[item.id] or placement.added_by_id[item.id] then
      refuse_other_value(placement, queue, item)
      answer(placement, item.id, false)
    elseif not (item.key and placement.live[item.key]) then
      place_first(placement, queue, item)
    else
      place_behind(placement, queue, item)
    end
  end
  check_room(placement, queue)
  if placement.recent then
    recent.check(placement)
  end
  return placement
end

--- Save what changes of messages that were there, and list those that are due sooner; one that the same step has ended is passed over.
local function update(queue, changes, sooner)
  local more
  for _, change in ipairs(changes) do
    local message = change.message
    if queue.messages[message.id] == message then
      touch(queue, message)
      set_given(message, change.kept)
      message.letter = nil
      if change.moved then
        if change.moved.position < message.position then
          table.insert(sooner, message)
        end
        message.position, message.start_by = change.moved.position, change.moved.start_by
        message.lane, message.level, message.rank, queue.joins[message] = nil, nil, nil, true
      end
      queue.values[message.id] = change.value
    end
    more = more or { updated = {}, updated_keys = {} }
    table.insert(more.updated, message.id)
    table.insert(more.updated_keys, message.key)
  end
  return more
end

function put.write(command, placement)
  local queue = open_queue(command.queue)
  create(queue)
  if #placement.late > 0 then
    tell(queue, "expired", told(placement.late, { started = false }))
    remove(queue, placement.late)
    make_room(queue, #placement.late)
  end
  local added, ready, copied = {}, {}, {}
  local n = #placement.added > 0 and numbers.draw(#placement.added)
  for i, one in ipairs(placement.added) do
    local message = one.message
    message.n = n + i - 1
    queue.values[message.id] = one.value
    add(queue, message)
    added[i] = message
    table.insert(message.state == "buffered" and copied or ready, message)
  end
  local more = update(queue, placement.updated, ready)
  if #added > 0 or more then
    tell(queue, "put", told(added, more))
  end
  announce(queue, ready)
  -- The message that a copy waits behind may be settled by the same step.
  promote(queue, keys_of(copied))
  if placement.recent then
    recent.write(placement)
  end
  return { ids = placement.ids, created = placement.created }
end

commands.Put = put
