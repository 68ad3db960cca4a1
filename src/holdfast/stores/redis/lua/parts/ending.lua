--- What the end of a claim other than done leaves in a message.
-- @include begin

local HISTORY = {{HISTORY}} -- how many endings a message remembers; older ones are only counted

--- What a message remembers of one claim on it.
local function ending_of(message, at, how, error_text)
  return { message.holder or "", message.token or 0, message.since or 0, at, how, error_text }
end

--- Whether so many failures use up a message's budget, its own or else the claimer's or else the queue's.
local function is_spent(message, failures, fallback, policy)
  local limit = message.max_attempts or fallback.max_attempts or policy.max_attempts
  return limit ~= nil and failures >= limit
end

--- Write an ending into a message.
local function remember(message, ending, failed, trace)
  local history = message.history or {}
  table.insert(history, ending)
  if #history > HISTORY then
    table.remove(history, 1)
  end
  message.history, message.endings = history, (message.endings or 0) + 1
  message.last_error, message.trace = ending[6] or message.last_error, trace or message.trace
  if failed then
    message.failures = (message.failures or 0) + 1
  end
end

--- Where a message that is no longer held goes at the back of the line, or to its own place; `back` is the moment that the back means.
local function position_behind(message, return_to, back, delay)
  if return_to == "back" then
    return back + delay
  end
  return delay > 0 and math.max(message.position, now + delay) or message.position
end
