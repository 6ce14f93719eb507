#include "arrays.h"

#include <algorithm>
#include <new>
#include <optional>
#include <vector>

#include "onepass/status.h"

namespace onepass::python {
namespace {

constexpr std::int32_t dlpack_cpu = 1, dlpack_cuda = 2, dlpack_cuda_host = 3;

std::optional<DType> dtype_of(const nb::dlpack::dtype& dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto is = [&](Code code, int bits) {
    return dtype.code == static_cast<std::uint8_t>(code) && dtype.bits == bits && dtype.lanes == 1;
  };
  if (is(Code::Float, 64)) return DType::float64;
  if (is(Code::Float, 32)) return DType::float32;
  if (is(Code::Float, 16)) return DType::float16;
  if (is(Code::Bfloat, 16)) return DType::bfloat16;
  if (is(Code::Int, 64)) return DType::int64;
  if (is(Code::Int, 32)) return DType::int32;
  if (is(Code::UInt, 8)) return DType::uint8;
  if (is(Code::Bool, 8)) return DType::boolean;
  return std::nullopt;
}

nb::dlpack::dtype dlpack_of(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const Code code = dtype == DType::bfloat16 ? Code::Bfloat : Code::Float;
  return {static_cast<std::uint8_t>(code), static_cast<std::uint8_t>(8 * size_bytes(dtype)), 1};
}

std::string text_of(nb::handle object) { return nb::str(object).c_str(); }

bool is_numpy(nb::handle object) {
  return nb::isinstance(object, nb::module_::import_("numpy").attr("ndarray"));
}

// NumPy exports ml_dtypes.bfloat16 by no protocol, but its bits as uint16 by each.
bool is_numpy_bfloat16(nb::handle object) {
  return nb::hasattr(object, "dtype") && nb::hasattr(object, "view") &&
         text_of(object.attr("dtype")) == "bfloat16";
}

// Some libraries export memory by DLPack as if it were writable and know better when asked so.
bool is_read_only(nb::handle object) {
  if (!PyObject_CheckBuffer(object.ptr())) return false;
  Py_buffer buffer;
  if (PyObject_GetBuffer(object.ptr(), &buffer, PyBUF_WRITABLE | PyBUF_STRIDES) != 0) {
    PyErr_Clear();
    return true;
  }
  PyBuffer_Release(&buffer);
  return false;
}

// Why no protocol exports an array, as far as NumPy says.
std::string refusal(nb::handle object, const std::string& wanted) {
  if (is_numpy(object)) {
    const nb::object dtype = object.attr("dtype");
    if (!nb::cast<bool>(dtype.attr("isnative"))) {
      return "; the byte order of this machine is allowed; x.astype(x.dtype.newbyteorder(\"=\")) "
             "converts it";
    }
    const auto bytes = nb::cast<std::int64_t>(dtype.attr("itemsize"));
    for (const nb::handle stride : nb::tuple(object.attr("strides"))) {
      if (bytes == 0 || nb::cast<std::int64_t>(stride) % bytes == 0) continue;
      return " with strides of " + text_of(object.attr("strides")) +
             " bytes; strides of whole elements are allowed; copy it";
    }
  }
  return "; " + wanted + " is allowed; numpy.array(...) makes one";
}

template <class NdArray>
Array import_array(const std::string& argument, nb::handle object, const char* wanted) {
  Array array{nb::borrow(object), nb::borrow(object), {}};
  std::optional<DType> dtype;
  NdArray memory;
  bool imported = nb::try_cast(object, memory, false);
  if (!imported && is_numpy_bfloat16(object)) {
    array.owner = object.attr("view")("uint16");
    imported = nb::try_cast(array.owner, memory, false);
    dtype = DType::bfloat16;
  }
  if (!imported) {
    throw Error(
        Status::type_error(argument + ": found " + kind_of(object) + refusal(object, wanted)));
  }
  if (!dtype) dtype = dtype_of(memory.dtype());
  if (!dtype) {
    throw Error(Status::type_error(argument + ": found " + kind_of(object) +
                                   "; float64, float32, bfloat16 and float16, and in args also "
                                   "int64, int32, uint8 and bool, are allowed; convert it"));
  }
  if (memory.ndim() > static_cast<std::size_t>(max_rank)) {
    throw Error(Status::invalid(argument + ": " + std::to_string(memory.ndim()) +
                                " dims; at most 4 are allowed; reshape it"));
  }
  Device device;
  device.index = memory.device_id();
  if (memory.device_type() == dlpack_cuda) {
    device.kind = Device::Kind::cuda;
  } else if (memory.device_type() != dlpack_cpu && memory.device_type() != dlpack_cuda_host) {
    throw Error({Code::not_supported, argument + ": on a device of DLPack type " +
                                          std::to_string(memory.device_type()) +
                                          "; CPU memory is allowed; copy it to the CPU"});
  } else {
    device.index = 0;
  }
  std::vector<std::int64_t> shape, strides;
  for (std::size_t i = 0; i < memory.ndim(); ++i) {
    shape.push_back(static_cast<std::int64_t>(memory.shape(i)));
    strides.push_back(memory.stride(i));
  }
  array.view = TensorView(memory.data(), *dtype, shape, strides, device);
  array.owner = nb::make_tuple(array.owner, nb::cast(memory));
  return array;
}

constexpr std::align_val_t alignment{64};

// Memory that any array library can take over by DLPack.
nb::object make_memory(DType dtype, std::span<const std::int64_t> shape) {
  std::vector<std::size_t> sizes(shape.begin(), shape.end());
  std::size_t bytes = static_cast<std::size_t>(size_bytes(dtype));
  for (std::size_t size : sizes) bytes *= size;
  void* memory = ::operator new(std::max<std::size_t>(bytes, 1), alignment);
  nb::capsule owner(memory, [](void* p) noexcept { ::operator delete(p, alignment); });
  return nb::cast(nb::ndarray<nb::array_api>(memory, sizes.size(), sizes.data(), owner, nullptr,
                                             dlpack_of(dtype)));
}

bool is_torch(nb::handle object) { return nb::hasattr(object, "new_empty"); }

bool has_namespace(nb::handle object) {
  return !is_numpy(object) && !is_torch(object) && nb::hasattr(object, "__array_namespace__");
}

nb::object tuple_of(std::span<const std::int64_t> shape) {
  nb::list sizes;
  for (std::int64_t size : shape) sizes.append(size);
  return nb::tuple(sizes);
}

nb::object numpy_dtype(DType dtype) {
  if (dtype == DType::bfloat16) return nb::module_::import_("ml_dtypes").attr("bfloat16");
  return nb::str(name(dtype));
}

bool on_gpu(const Array& array) { return array.view.device.kind == Device::Kind::cuda; }

// By the package that made `like`, on the device that is current there.
nb::object make_on_gpu(const Array& like, DType dtype, std::span<const std::int64_t> shape) {
  const nb::object package = package_of(like.object);
  if (nb::hasattr(package, "empty")) {
    return package.attr("empty")(tuple_of(shape), nb::arg("dtype") = numpy_dtype(dtype));
  }
  throw Error(Status::type_error("out: not given beside q, a " + kind_of(like.object) +
                                 " on a GPU, whose package has no empty(); arrays of PyTorch and "
                                 "CuPy get their outputs so; pass out, or one of these"));
}

}  // namespace

nb::object package_of(nb::handle object) {
  const std::string module = text_of(nb::handle(object.type()).attr("__module__"));
  return nb::module_::import_(module.substr(0, module.find('.')).c_str());
}

std::string kind_of(nb::handle object) {
  std::string kind = text_of(nb::handle(object.type()).attr("__name__"));
  if (nb::hasattr(object, "dtype")) kind += " of " + text_of(object.attr("dtype"));
  return kind;
}

Array read_array(const std::string& argument, nb::handle object) {
  return import_array<nb::ndarray<nb::ro>>(argument, object,
                                           "an array (NumPy, or anything with __dlpack__)");
}

Array write_array(const std::string& argument, nb::handle object) {
  const char* wanted = "a writable array (NumPy, or anything with __dlpack__)";
  const bool locked = is_numpy(object) && !nb::cast<bool>(object.attr("flags").attr("writeable"));
  if (!locked) {
    Array array = import_array<nb::ndarray<>>(argument, object, wanted);
    if (!is_read_only(is_numpy_bfloat16(object) ? array.owner[0] : object)) return array;
  }
  throw Error(Status::type_error(argument + ": read-only " + kind_of(object) + "; " + wanted +
                                 " is allowed; copy it"));
}

Array read_optional(const std::string& argument, nb::handle object) {
  return object.is_none() ? Array{} : read_array(argument, object);
}

TensorView imagine(DType dtype, std::span<const std::int64_t> shape, Device device) {
  std::vector<std::int64_t> strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return TensorView(nullptr, dtype, shape, strides, device);
}

Array make_like(const Array& like, DType dtype, std::span<const std::int64_t> shape) {
  nb::object made;
  if (is_torch(like.object)) {
    const nb::object torch = nb::module_::import_("torch");
    made =
        like.object.attr("new_empty")(tuple_of(shape), nb::arg("dtype") = torch.attr(name(dtype)));
  } else if (on_gpu(like)) {
    made = make_on_gpu(like, dtype, shape);
  } else if (has_namespace(like.object)) {
    made = make_memory(dtype, shape);
  } else {
    made = nb::module_::import_("numpy").attr("empty")(tuple_of(shape), numpy_dtype(dtype));
  }
  return import_array<nb::ndarray<>>("out", made, "an array");
}

nb::object finish(const Array& like, const Array& made) {
  if (on_gpu(like) || !has_namespace(like.object)) return made.object;
  return like.object.attr("__array_namespace__")().attr("from_dlpack")(made.object);
}

DType read_dtype(const std::string& argument, nb::handle object) {
  std::string wanted = text_of(nb::hasattr(object, "name")       ? object.attr("name")
                               : nb::hasattr(object, "__name__") ? object.attr("__name__")
                                                                 : nb::borrow(object));
  wanted = wanted.substr(wanted.rfind('.') + 1);
  for (DType dtype : {DType::float64, DType::float32, DType::bfloat16, DType::float16}) {
    if (wanted == name(dtype)) return dtype;
  }
  throw Error(Status::type_error(argument + ": found " + text_of(object) +
                                 "; float64, float32, bfloat16 or float16 is allowed; leave it "
                                 "out for the dtype of q"));
}

}  // namespace onepass::python
