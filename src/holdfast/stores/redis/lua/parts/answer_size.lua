--- How much of an answer the fields of a hash take.
-- @include begin

local function size_of(key, fields)
  local size = 0
  for _, field in ipairs(fields) do
    size = size + call("HSTRLEN", key, field)
  end
  return size
end
