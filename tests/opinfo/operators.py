"""The operators of PyTorch's own test database that Baretorch is held to, by their names there.

`name/variant` where the database has several entries of one name. Each row says the types of the samples.
"""

from __future__ import annotations

FLOAT = ("float32",)
NUMBERS = ("float32", "int64")
ALL = ("float32", "int64", "bool")
TRUTHS = ("bool", "int64")

# In these the weights are constants, as they are in a model: every tensor but the first, or here the first alone.
WEIGHTS_AFTER = {
    "nn.functional.linear",
    "nn.functional.conv1d",
    "nn.functional.conv2d",
    "nn.functional.conv3d",
    "nn.functional.conv_transpose1d",
    "nn.functional.conv_transpose2d",
    "nn.functional.batch_norm",
    "nn.functional.layer_norm",
    "nn.functional.group_norm",
    "nn.functional.instance_norm",
    "nn.functional.rms_norm",
    "nn.functional.prelu",
    "nn.functional.embedding_bag",
}
WEIGHTS_FIRST = {"nn.functional.embedding"}

_OPERATORS: dict[tuple[str, ...], str] = {
    FLOAT: """
        addmm addmv baddbmm bmm dot matmul mm mv inner outer einsum tensordot
        nn.functional.linear nn.functional.conv1d nn.functional.conv2d nn.functional.conv3d
        nn.functional.conv_transpose1d nn.functional.conv_transpose2d
        nn.functional.scaled_dot_product_attention 
        div/no_rounding_mode div/trunc_rounding div/floor_rounding floor_divide fmod remainder pow square
        lerp addcmul addcdiv logaddexp xlogy
        floor ceil trunc frac round round/decimals_0 round/decimals_3 round/decimals_neg_3
        sqrt rsqrt reciprocal exp exp2 expm1
        log log1p log2 log10 sin cos tan tanh sinc sigmoid logit erf nan_to_num
        asin acos atan atan2 sinh cosh asinh acosh atanh erfc erfinv hypot
        special.erfcx special.ndtr special.log_ndtr special.entr special.xlog1py
        deg2rad rad2deg isnan isinf isfinite isposinf isneginf
        nn.functional.relu nn.functional.relu6 nn.functional.leaky_relu nn.functional.rrelu nn.functional.prelu
        nn.functional.elu nn.functional.selu nn.functional.celu nn.functional.gelu nn.functional.silu nn.functional.mish
        nn.functional.hardsigmoid nn.functional.hardswish nn.functional.hardtanh nn.functional.softplus
        nn.functional.logsigmoid nn.functional.hardshrink nn.functional.softshrink nn.functional.threshold
        nn.functional.softsign nn.functional.tanhshrink nn.functional.glu nn.functional.softmin
        nn.functional.dropout
        softmax log_softmax logsumexp
        nn.functional.batch_norm nn.functional.layer_norm nn.functional.group_norm nn.functional.instance_norm
        nn.functional.rms_norm nn.functional.local_response_norm
        nn.functional.normalize nn.functional.cosine_similarity nn.functional.pairwise_distance
        nn.functional.mse_loss nn.functional.l1_loss
        nn.functional.max_pool1d nn.functional.max_pool2d nn.functional.avg_pool1d nn.functional.avg_pool2d
        nn.functional.adaptive_avg_pool1d nn.functional.adaptive_avg_pool2d
        nn.functional.adaptive_max_pool1d nn.functional.adaptive_max_pool2d
        nn.functional.max_pool3d nn.functional.avg_pool3d nn.functional.adaptive_avg_pool3d
        nn.functional.adaptive_max_pool3d
        nn.functional.max_unpool1d nn.functional.max_unpool2d nn.functional.max_unpool3d
        nn.functional.interpolate/nearest nn.functional.interpolate/nearest-exact nn.functional.interpolate/linear
        nn.functional.interpolate/bilinear nn.functional.interpolate/area
        nn.functional.interpolate/bicubic nn.functional.grid_sample grid_sampler_2d cdist nn.functional.embedding_bag
        median nanmedian mode kthvalue
        scatter_reduce/sum scatter_reduce/prod scatter_reduce/mean scatter_reduce/amax scatter_reduce/amin
        nn.functional.upsample_nearest nn.functional.upsample_bilinear
        nn.functional.pixel_shuffle nn.functional.pixel_unshuffle nn.functional.channel_shuffle nn.functional.unfold
        nn.functional.pad/reflect nn.functional.pad/replicate nn.functional.pad/replicate_negative
        mean var std var/unbiased std/unbiased var_mean std_mean norm linalg.vector_norm linalg.norm
        nn.functional.embedding fft.irfft fft.irfft2 fft.hfft
    """,
    NUMBERS: """
        add sub rsub mul minimum maximum max/binary min/binary clamp clamp_min clamp_max neg abs sign sgn trace
        eq ne lt le gt ge
        sum prod amax amin aminmax max/reduction_with_dim max/reduction_no_dim min/reduction_with_dim
        min/reduction_no_dim argmax argmin cumsum topk sort argsort msort diff count_nonzero
        scatter scatter_add index_add index_copy index_fill index_put tril triu
        nn.functional.pad/constant nn.functional.pad/circular constant_pad_nd
    """,
    ALL: """
        any all where masked_fill logical_not logical_and logical_or logical_xor
        cat stack hstack vstack dstack column_stack split split/list_args split_with_sizes chunk tensor_split hsplit
        vsplit unbind narrow slice select squeeze squeeze/multiple unsqueeze permute transpose movedim t T mT
        reshape reshape_as view view_as flatten unflatten ravel atleast_1d atleast_2d atleast_3d
        expand expand_as broadcast_to broadcast_tensors repeat tile repeat_interleave flip fliplr flipud rot90 roll
        meshgrid/variadic_tensors meshgrid/list_of_tensors select_scatter fill as_strided
        gather take_along_dim index_select __getitem__ diagonal unfold
        full_like zeros_like ones_like new_full new_zeros new_ones clone contiguous to
        float bool int long
    """,
    TRUTHS: "bitwise_not bitwise_and bitwise_or bitwise_xor",
    ("int32", "int64"): "bitwise_left_shift bitwise_right_shift",
    ("int64",): "nn.functional.one_hot arange eye",
}
OPERATORS: dict[str, tuple[str, ...]] = {name: types for types, names in _OPERATORS.items() for name in names.split()}

# Operators none of whose samples compile, and why.
NONE_PASSES = {
    "as_strided": "its result depends on the memory layout of a tensor",
    "to": "its samples convert to float64 and back",
}
