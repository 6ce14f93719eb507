#include "docs.h"
#include "functions.h"
#include "onepass/onepass.h"
#include "options.h"

namespace onepass::python {
namespace {

void merge(Given& given) {
  const Array o = write_array("o", given.required("o"));
  const Array lse = write_array("lse", given.required("lse"));
  const Array o_other = read_array("o_other", given.required("o_other"));
  const Array lse_other = read_array("lse_other", given.required("lse_other"));
  Exec exec;
  exec.threads = read_threads(given.optional("threads"));
  given.end();
  nb::gil_scoped_release released;
  onepass::merge(o.view, lse.view, o_other.view, lse_other.view, exec);
}

}  // namespace

void bind_merge(nb::module_& m) {
  bind(m, "merge", {"o", "lse", "o_other", "lse_other"}, merge_signature, merge_doc, merge);
}

}  // namespace onepass::python
