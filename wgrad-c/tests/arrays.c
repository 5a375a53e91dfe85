/* DLPack arrays of every layout, and Vulkan buffers that tensors share without a copy. */
#include <vulkan/vulkan.h>

#include "check.h"

/* dlpack.h 1.0 */
typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct { void *data; DLDevice device; int32_t ndim; DLDataType dtype; int64_t *shape, *strides; uint64_t byte_offset; } DLTensor;
struct DLManagedTensor { DLTensor dl_tensor; void *manager_ctx; void (*deleter)(struct DLManagedTensor *); };
typedef struct { uint32_t major, minor; } DLPackVersion;
struct DLManagedTensorVersioned {
    DLPackVersion version; void *manager_ctx; void (*deleter)(struct DLManagedTensorVersioned *); uint64_t flags; DLTensor dl_tensor;
};

static int deleted = 0;
static void delete_new(struct DLManagedTensorVersioned *array) { deleted += array->manager_ctx == &deleted; }
static void delete_old(struct DLManagedTensor *array) { deleted += array->manager_ctx == &deleted; }

static void expect(wgrad_tensor *tensor, const float *values, size_t count) {
    float read[64];
    CHECK(wgrad_tensor_read(tensor, read, count * sizeof(float)));
    for (size_t i = 0; i < count; i++)
        if (read[i] != values[i]) FAIL("element %zu is %g in place of %g", i, read[i], values[i]);
    CHECK(wgrad_tensor_free(tensor));
}

static void dlpack(void) {
    float data[12] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11};
    int64_t shape[2] = {2, 3}, transposed[2] = {1, 2}, backwards[2] = {-3, -1}, none[2] = {0, 0}, row_major[2] = {3, 1};
    struct DLManagedTensorVersioned array = {{1, 1}, &deleted, delete_new, 0, {data, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0}};
    wgrad_tensor *tensor;

    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    TRUE(deleted == 1);
    expect(tensor, data, 6);
    array.dl_tensor.strides = row_major;
    array.dl_tensor.byte_offset = 8;
    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    expect(tensor, data + 2, 6);
    array.dl_tensor.byte_offset = 0;
    array.dl_tensor.strides = transposed;
    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    expect(tensor, (float[]){0, 2, 4, 1, 3, 5}, 6);
    array.dl_tensor.strides = backwards;
    array.dl_tensor.byte_offset = 20;
    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    expect(tensor, (float[]){5, 4, 3, 2, 1, 0}, 6);
    array.dl_tensor.byte_offset = 0;
    array.dl_tensor.strides = none;
    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    expect(tensor, (float[6]){0}, 6);
    array.dl_tensor.ndim = 0;
    CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
    expect(tensor, data, 1);
    TRUE(deleted == 6);

    /* A scalar of each dtype with a value of its own. */
    int64_t i64 = -3;
    double f64 = 0.5;
    uint8_t yes = 1;
    struct { DLDataType dtype; void *data; const char *text; } kinds[] = {
        {{0, 64, 1}, &i64, "-3"}, {{2, 64, 1}, &f64, "0.5"}, {{6, 8, 1}, &yes, "True"}};
    for (int i = 0; i < 3; i++) {
        char *text;
        array.dl_tensor.dtype = kinds[i].dtype;
        array.dl_tensor.data = kinds[i].data;
        CHECK(wgrad_tensor_from_dlpack(NULL, &array, &tensor));
        CHECK(wgrad_tensor_to_string(tensor, &text));
        if (!strstr(text, kinds[i].text)) FAIL("%s is not in %s", kinds[i].text, text);
        wgrad_string_free(text);
        CHECK(wgrad_tensor_free(tensor));
    }

    /* What is refused stays the caller's. */
    int before = deleted;
    struct DLManagedTensorVersioned good = {{1, 1}, &deleted, delete_new, 0, {data, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0}}, wrong[10];
    for (int i = 0; i < 10; i++) wrong[i] = good;
    wrong[0].version.major = 2;
    wrong[1].dl_tensor.device.device_type = 2;
    wrong[2].dl_tensor.dtype.lanes = 4;
    wrong[3].dl_tensor.dtype.code = 5;
    wrong[4].dl_tensor.dtype.bits = 33;
    wrong[5].dl_tensor.ndim = -1;
    wrong[6].dl_tensor.shape = NULL;
    wrong[7].dl_tensor.data = NULL;
    int64_t negative[2] = {2, -3}, huge[2] = {INT64_MAX, 4};
    wrong[8].dl_tensor.shape = negative;
    wrong[9].dl_tensor.shape = huge;
    for (int i = 0; i < 10; i++)
        if (wgrad_tensor_from_dlpack(NULL, &wrong[i], &tensor) == WGRAD_OK || tensor) FAIL("wrong array %d", i);
    TRUE(deleted == before);

    struct DLManagedTensor old = {good.dl_tensor, &deleted, delete_old};
    CHECK(wgrad_tensor_from_dlpack_unversioned(NULL, &old, &tensor));
    TRUE(deleted == before + 1);

    /* And back. */
    struct DLManagedTensorVersioned *exported;
    CHECK(wgrad_tensor_to_dlpack(tensor, &exported));
    CHECK(wgrad_tensor_free(tensor));
    DLTensor *t = &exported->dl_tensor;
    TRUE(exported->version.major == 1 && t->device.device_type == 1 && t->ndim == 2 && t->dtype.code == 2 && t->dtype.bits == 32);
    TRUE(t->shape[0] == 2 && t->shape[1] == 3 && t->strides[0] == 3 && t->strides[1] == 1 && (uintptr_t)t->data % 256 == 0);
    TRUE(memcmp(t->data, data, 24) == 0);
    CHECK(wgrad_tensor_from_dlpack(NULL, exported, &tensor));
    expect(tensor, data, 6);
}

static void vulkan(void) {
    wgrad_device *device;
    wgrad_vulkan own;
    CHECK(wgrad_device_open(NULL, 0, &device));
    if (wgrad_device_vulkan(device, &own) == WGRAD_UNIMPLEMENTED) FAIL("the device does not run on Vulkan");
    VkDevice vk = own.device;

    /* Clones and reshaped tensors share the buffer of their tensor. */
    float values[4] = {1, 2, 3, 4};
    uint64_t first, second, size;
    wgrad_tensor *x = floats(device, 4, values), *clone, *reshaped;
    CHECK(wgrad_tensor_clone(x, &clone));
    CHECK(wgrad_op(NULL, "tf.reshape", NULL, &x, 1, "{\"shape\": [2, 2]}", &reshaped, 1, NULL));
    CHECK(wgrad_tensor_vulkan_buffer(x, &first, &size));
    TRUE(first != 0 && size >= 16);
    CHECK(wgrad_tensor_vulkan_buffer(clone, &second, &size));
    TRUE(first == second);
    CHECK(wgrad_tensor_vulkan_buffer(reshaped, &second, &size));
    TRUE(first == second);
    wgrad_tensor *shared[] = {x, clone, reshaped};
    for (int i = 0; i < 3; i++) CHECK(wgrad_tensor_free(shared[i]));

    /* A buffer of this program, in memory that the host can write. */
    VkBufferCreateInfo info = {.sType = VK_STRUCTURE_TYPE_BUFFER_CREATE_INFO, .size = 64,
        .usage = VK_BUFFER_USAGE_STORAGE_BUFFER_BIT | VK_BUFFER_USAGE_TRANSFER_SRC_BIT | VK_BUFFER_USAGE_TRANSFER_DST_BIT};
    VkBuffer buffer;
    TRUE(vkCreateBuffer(vk, &info, NULL, &buffer) == VK_SUCCESS);
    VkMemoryRequirements needs;
    vkGetBufferMemoryRequirements(vk, buffer, &needs);
    VkPhysicalDeviceMemoryProperties memories;
    vkGetPhysicalDeviceMemoryProperties(own.physical_device, &memories);
    VkMemoryPropertyFlags wanted = VK_MEMORY_PROPERTY_HOST_VISIBLE_BIT | VK_MEMORY_PROPERTY_HOST_COHERENT_BIT;
    uint32_t type = 0;
    while (type < memories.memoryTypeCount && (!(needs.memoryTypeBits >> type & 1) || (memories.memoryTypes[type].propertyFlags & wanted) != wanted)) type++;
    TRUE(type < memories.memoryTypeCount);
    VkMemoryAllocateInfo allocation = {.sType = VK_STRUCTURE_TYPE_MEMORY_ALLOCATE_INFO, .allocationSize = needs.size, .memoryTypeIndex = type};
    VkDeviceMemory memory;
    TRUE(vkAllocateMemory(vk, &allocation, NULL, &memory) == VK_SUCCESS);
    TRUE(vkBindBufferMemory(vk, buffer, memory, 0) == VK_SUCCESS);
    float *mapped;
    TRUE(vkMapMemory(vk, memory, 0, VK_WHOLE_SIZE, 0, (void **)&mapped) == VK_SUCCESS);

    for (int turn = 1; turn <= 3; turn++) {
        for (int i = 0; i < 16; i++) mapped[i] = (float)(i * turn);
        wgrad_tensor *over;
        int64_t shape[2] = {4, 4};
        CHECK(wgrad_tensor_from_vulkan_buffer(device, (uint64_t)buffer, 64, WGRAD_FLOAT32, shape, 2, &over));
        CHECK(wgrad_tensor_vulkan_buffer(over, &first, &size));
        TRUE(first == (uint64_t)buffer && size == 64);
        wgrad_tensor *sum = unary("tf.math.reduce_sum", over);
        CHECK(wgrad_tensor_release_vulkan_buffer(over));
        mapped[0] = 1000; /* after the release, the sum is not changed */
        expect(sum, (float[]){120.0f * (float)turn}, 1);
    }
    wgrad_tensor *over, *also;
    int64_t sixteen = 16;
    CHECK(wgrad_tensor_from_vulkan_buffer(device, (uint64_t)buffer, 64, WGRAD_FLOAT32, &sixteen, 1, &over));
    CHECK(wgrad_tensor_clone(over, &also));
    TRUE(wgrad_tensor_release_vulkan_buffer(over) == WGRAD_DEVICE);
    CHECK(wgrad_tensor_free(also));
    CHECK(wgrad_device_synchronize(device));

    vkDestroyBuffer(vk, buffer, NULL);
    vkFreeMemory(vk, memory, NULL);
    CHECK(wgrad_device_free(device));
}

int main(void) {
    dlpack();
    vulkan();
    TRUE(wgrad_open_handles() == 0);
    printf("DLPack and Vulkan buffers\n");
    return 0;
}
