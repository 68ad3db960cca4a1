--- How a message is kept: a packed map. See messages.lua for where it lies.
--
-- The fast paths join records from packed pieces, instead of packing a table for each. Theirs are maps with a length of two bytes, which
-- `cmsgpack` itself uses for no less than 16 fields, and begin with the number of fields and n. What became of a message whose first claim
-- took the fast path is only what the claim gave it, and goes on with token and until. Each of these is a number of eight bytes in a fixed
-- place. The other fields follow; a message as it was put ends with its value.
-- @include begin

local COUNT_AT, N_AT, TOKEN_AT, UNTIL_AT = 3, 7, 22, 37 -- where these are in a joined record
local N, TOKEN, UNTIL = "\161n\207", "\165token\207", "\165until\207" -- what these fields begin with
local VALUE = "\165value\219" -- its length follows, in four bytes

--- The beginning of a joined record of so many fields.
local function head_of(count)
  return "\222\0" .. string.char(count)
end

--- Whether a record holds no more than what a first claim added.
local function is_first_claim(packed)
  return string.sub(packed, 1, 2) == "\222\0" and string.byte(packed, COUNT_AT) < 16
end
