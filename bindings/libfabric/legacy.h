/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Names that programs for old versions of the API still ask by, and that libfabric 2's headers warn
 * of wherever used.
 */
#ifndef RWK_FI_LEGACY_H
#define RWK_FI_LEGACY_H

#include <rdma/fabric.h>

/** The two registration modes of an API before 1.5: FI_MR_BASIC, FI_MR_SCALABLE. */
#define RWK_FI_MR_BASIC    (1 << 0)
#define RWK_FI_MR_SCALABLE (1 << 1)

#if FI_MAJOR_VERSION < 2
_Static_assert(RWK_FI_MR_BASIC == FI_MR_BASIC && RWK_FI_MR_SCALABLE == FI_MR_SCALABLE, "the same bits");
#endif

#endif
