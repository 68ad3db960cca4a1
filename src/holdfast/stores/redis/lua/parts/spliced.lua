--- Records of messages that the short ways splice from packed pieces, instead of packing a table for each. See queue.lua for where they lie.
--
-- They are maps with a length of two bytes, which `cmsgpack` itself uses for no less than 16 fields, and begin with
--   3 how many fields   7 n
-- What became of a message whose first claim went the short way goes on with what it was given,
--   22 its token        37 the end of its lease
-- all but the first being numbers of eight bytes. The other fields follow; a message as it was put ends with its value.
-- @include begin

local N, TOKEN, UNTIL = "\161n\207", "\165token\207", "\165until\207" -- what these fields begin with
local VALUE = "\165value\219" -- its length follows, in four bytes

--- The beginning of a record of so many fields.
local function head_of(count)
  return "\222\0" .. string.char(count)
end

local function is_spliced(packed)
  return string.sub(packed, 1, 2) == "\222\0" and string.byte(packed, 3) < 16
end
