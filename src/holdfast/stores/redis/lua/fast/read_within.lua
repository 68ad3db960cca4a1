--- What fast read and fast claim bring of a hash, when it may be too much for an answer.
-- @include begin

--- The fields, and how much of the answer they take with the `size` that it has already; nothing where that is too much.
--
-- A few at a time: what is too much is never in memory as a whole.
local function read_within(key, fields, size)
  local found = {}
  for first = 1, #fields, FEW do
    for i, value in ipairs(call("HMGET", key, unpack(fields, first, math.min(first + FEW - 1, #fields)))) do
      found[first + i - 1], size = value, size + (value and #value or 0)
    end
    if size > ANSWER_BYTES then
      return nil
    end
  end
  return found, size
end
