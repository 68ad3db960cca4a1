"""No block of the documents is left out or changed."""

import pytest

from tests.seeds.blocks import HASHES, blocks_of, hash_of


@pytest.mark.parametrize("document", HASHES)
def test_every_block_is_there_as_the_document_has_it(document: str) -> None:
    assert {title: hash_of(block) for title, block in blocks_of(document).items()} == HASHES[document]
