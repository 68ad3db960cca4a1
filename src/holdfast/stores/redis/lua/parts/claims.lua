--- The claims that a command names by receipt.
-- @include queue

--- The message that each receipt still holds, false where it is lost; a receipt that stands twice counts once.
--
-- A receipt is {queue, id, token}.
local function held_by(command)
  command.receipts = {}
  for i, id in ipairs(command.ids) do
    command.receipts[i] = { command.queues[i] or command.queues[1], id, command.tokens[i] } -- A queue that all share comes once.
  end
  local ids, held, seen, lost = {}, {}, {}, {}
  for _, receipt in ipairs(command.receipts) do
    ids[receipt[1]] = ids[receipt[1]] or {}
    table.insert(ids[receipt[1]], receipt[2])
  end
  for name, wanted in pairs(ids) do
    load_messages(open_queue(name), wanted)
  end
  for i, receipt in ipairs(command.receipts) do
    local message = open_queue(receipt[1]).messages[receipt[2]]
    held[i] = message and message.token == receipt[3] and is_held(message) and not seen[message] and message or false
    if held[i] then
      seen[message] = true
    else
      table.insert(lost, receipt)
    end
  end
  if command.all_or_none and #lost > 0 then
    refuse("ClaimLost", { lost = lost, of = #command.receipts })
  end
  return held
end

--- The held messages of each queue, in the order of the receipts: a list of {queue, messages}.
local function by_queue(command, held)
  local groups, of = {}, {}
  for i, receipt in ipairs(command.receipts) do
    if held[i] then
      local group = of[receipt[1]]
      if not group then
        group = { queue = open_queue(receipt[1]), messages = {} }
        of[receipt[1]] = group
        table.insert(groups, group)
      end
      table.insert(group.messages, held[i])
    end
  end
  return groups
end

--- Which receipts held something.
local function flags(held)
  local answer = {}
  for i, message in ipairs(held) do
    answer[i] = message and true
  end
  return { held = answer }
end
