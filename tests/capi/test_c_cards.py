"""BMLib's mappings, copies and facts of cards, as public programs of the BM1684X use them."""

from __future__ import annotations

from pathlib import Path

import pytest
from c_programs import SANITIZED, needs_compiler, program, run

pytestmark = needs_compiler

PROGRAM = """
#include <bmlib_runtime.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
static int refused(bm_status_t code, bm_status_t wanted, const char *word)
{
    if (code == wanted && strstr(bmcapi_last_error(), word))
        return 1;
    fprintf(stderr, "%d, not %d with %s: %s\\n", (int)code, (int)wanted, word, bmcapi_last_error());
    return 0;
}
static int mapped(bm_handle_t handle, bm_device_mem_t mem)
{
    uint8_t data[64], found[64];
    unsigned long long address = 0, device = 0;
    uint8_t *bytes;
    int i;
    for (i = 0; i < 64; i++)
        data[i] = (uint8_t)(3 * i);
    if (bm_memcpy_s2d(handle, mem, data) || bm_mem_mmap_device_mem(handle, &mem, &address))
        return 1;
    if (bm_mem_invalidate_device_mem(handle, &mem) || bm_mem_invalidate_partial_device_mem(handle, &mem, 60, 4))
        return 2;
    bytes = (uint8_t *)(uintptr_t)address;
    if (memcmp(bytes, data, 64) || bm_mem_vir_to_phy(handle, address + 5, &device))
        return 3;
    if (device != bm_mem_get_device_addr(mem) + 5)
        return 4;
    bytes[63] = 7;
    if (bm_mem_flush_partial_device_mem(handle, &mem, 63, 1) || bm_mem_flush_device_mem(handle, &mem))
        return 5;
    if (bm_memcpy_d2s(handle, found, mem) || found[63] != 7 || memcmp(found, data, 63))
        return 6;
    if (!refused(bm_mem_flush_partial_device_mem(handle, &mem, 63, 2), BM_ERR_PARAM, "leave a memory of 64 bytes"))
        return 7;
    if (!refused(bm_mem_unmap_device_mem(handle, bytes, 63), BM_ERR_PARAM, "vmem: no mapping of 63 bytes"))
        return 8;
    bm_free_device(handle, mem);
    bytes[0] = 1; /* of nobody now, and still there */
    if (bm_mem_unmap_device_mem(handle, bytes, 64))
        return 9;
    if (!refused(bm_mem_unmap_device_mem(handle, bytes, 64), BM_ERR_PARAM, "no mapping"))
        return 10;
    if (!refused(bm_mem_mmap_device_mem(handle, &mem, &address), BM_ERR_PARAM, "freed"))
        return 11;
    return 0;
}
static int copies(bm_handle_t handle)
{
    const uint16_t halves[6] = {1, 2, 3, 4, 5, 6};
    uint8_t found[12];
    bm_device_mem_t from, to;
    if (bm_malloc_device_byte_heap_mask(handle, &from, 1 << 1, 12) || bm_malloc_device_byte(handle, &to, 12))
        return 1;
    if (bm_memcpy_s2d(handle, from, (void *)(uintptr_t)halves) || bm_memset_device(handle, 0, to))
        return 2;
    if (bm_memcpy_d2d(handle, to, 4, from, 2, 2) || bm_memcpy_d2s(handle, found, to))
        return 3;
    if (memcmp(found + 4, halves + 1, 8))
        return 10;
    if (bm_memcpy_d2d_stride(handle, to, 1, from, 2, 3, 2) || bm_memcpy_d2s(handle, found, to))
        return 4;
    if (found[0] != 1 || found[2] != 3 || found[4] != 5)
        return 5;
    if (bm_memcpy_d2d_stride(handle, to, 4, from, 1, 3, 1) || bm_memcpy_d2s(handle, found, to))
        return 6;
    if (found[0] != 1 || found[4] != 0 || found[8] != 2)
        return 7;
    if (!refused(bm_memcpy_d2d_stride(handle, to, 2, from, 1, 3, 1), BM_ERR_PARAM, "dst_stride is 2"))
        return 8;
    if (!refused(bm_memcpy_d2d(handle, to, 8, from, 0, 2), BM_ERR_PARAM, "8 bytes at 8 leave"))
        return 9;
    bm_free_device(handle, from);
    bm_free_device(handle, to);
    return 0;
}
static int facts(bm_handle_t handle)
{
    struct { unsigned before; struct bm_misc_info it; unsigned behind; } guarded;
    bm_heap_stat_byte_t first, second;
    bm_profile_t profile;
    unsigned heaps = 0, heap = 9;
    unsigned long long address = 0;
    bm_device_mem_t mem;
    int host = 5;
    guarded.before = guarded.behind = 0x5eed;
    if (bm_get_misc_info(handle, &guarded.it) || guarded.before != 0x5eed || guarded.behind != 0x5eed)
        return 1;
    if (guarded.it.pcie_soc_mode != 1 || guarded.it.chipid != 0x1686)
        return 2;
    if (guarded.it.chipid_bit_mask != BM1686_CHIPID_BIT_MASK)
        return 12;
    if (bm_get_gmem_total_heap_num(handle, &heaps) || heaps != 3)
        return 3;
    if (bm_get_gmem_heap_stat_byte_by_id(handle, &first, 1) || bm_malloc_device_mem(handle, &address, 1, 4096))
        return 4;
    if (bm_get_gmem_heap_stat_byte_by_id(handle, &second, 1) || second.mem_used - first.mem_used != 4096)
        return 5;
    if (second.mem_avail + second.mem_used != second.mem_total || (long long)second.mem_total != guarded.it.ddr0a_size)
        return 6;
    mem = bm_mem_from_device(address, 4096);
    if (bm_get_gmem_heap_id(handle, &mem, &heap) || heap != 0 || bm_mem_get_type(mem) != BM_MEM_TYPE_DEVICE)
        return 7;
    bm_free_device_mem(handle, address);
    if (!refused(bm_get_gmem_heap_id(handle, &mem, &heap), BM_ERR_PARAM, "freed"))
        return 8;
    mem = bm_mem_from_system(&host);
    if (bm_mem_get_type(mem) != BM_MEM_TYPE_SYSTEM || bm_mem_get_system_addr(mem) != (void *)&host)
        return 9;
    if (mem.u.system.system_addr != &host)
        return 13;
    if (!refused(bm_memset_device(handle, 0, mem), BM_ERR_PARAM, "not allocated"))
        return 10;
    if (bm_get_profile(handle, &profile) || profile.cdma_in_counter < 2 || profile.cdma_out_counter < 4)
        return 11;
    bm_flush(handle);
    return bm_set_sync_timeout(handle, 1000) || !refused(bm_set_sync_timeout(handle, 0), BM_ERR_PARAM, "0 ms");
}
int main(void)
{
    bm_handle_t handle;
    bm_device_mem_t mem;
    int code;
    if (bm_dev_request(&handle, 0) || bm_malloc_device_byte(handle, &mem, 64))
        return 1;
    if ((code = mapped(handle, mem)))
        return 20 + code;
    if ((code = copies(handle)))
        return 40 + code;
    if ((code = facts(handle)))
        return 60 + code;
    bm_dev_free(handle);
    return 0;
}
"""


@pytest.mark.parametrize("compiler", ["gcc", "g++"])
def test_memory_is_mapped_copied_and_counted(built: Path, tmp_path: Path, compiler: str) -> None:
    file = tmp_path / "cards.c"
    file.write_text(PROGRAM)
    done = run(program(built, "bmlib", file, compiler, *(SANITIZED if compiler == "gcc" else ("-std=c++17",))))
    assert done.returncode == 0, (done.returncode, done.stderr.decode()[-2000:])
