// Puts the state before the first step of a recurrent layer where the steps find it, beside zeros for what only steps have.
// y[b,q,:] = start[b,q,:] for the S parts of the state, 0 for the P - S others
// 0 start: [B,S,U] read    1 y: [T+1,B,P,U] read and write    2 p: uniform
// Host declares: WG, P, S.   Grid: ceil(B*P*U / 4 / WG) workgroups.   One thread per four elements of y[0].
@group(0) @binding(0) var<storage, read> start: array<vec4<T>>;
@group(0) @binding(1) var<storage, read_write> y: array<vec4<f32>>;
@group(0) @binding(2) var<uniform> p: Params;

struct Params {
    quads: u32,  // U / 4
    total: u32,  // B*P*U / 4
    row: u32,    // workgroups along x
}

@compute @workgroup_size(WG)
fn main(@builtin(workgroup_id) group: vec3<u32>, @builtin(local_invocation_index) local: u32) {
    let e = (group.y * p.row + group.x) * WG + local;
    if (e >= p.total) { return; }
    let part = e / p.quads % P;
    let b = e / (p.quads * P);
    let at = (b * S + min(part, S - 1u)) * p.quads + e % p.quads;
    y[e] = select(vec4<f32>(0.0), vec4<f32>(start[at]), part < S);
}
