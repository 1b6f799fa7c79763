(** The facts that [derive] finds are true. Statements are in Plan.v; nobody has to read the proof, Coq does. *)
Require Import List Permutation Arith Lia Bool ZArith.
From Dpsql Require Import Near Ops Plan Freq Itself.
Import ListNotations.

Section Sound.
Variables tw aw : nat -> nat.
Variable policy : nat -> protection.
Variable promise : nat -> list (list nat * nat).
Variable I : interp.
Variables D U D' : nat -> list row.
Variable u : Z.
Notation width := (width tw aw).
Notation eval := (eval tw aw).
Notation most := (most tw aw promise).
Notation derive := (derive tw aw policy promise).
Notation neighbours := (neighbours policy D U D' u).
Notation holds := (holds tw aw I D U D' u).

Lemma some_ids_inv cs f : some_ids cs = Some f -> f = Ids cs.
Proof. destruct cs; simpl; congruence. Qed.
Lemma positions_in es cs c n : In c (positions es cs n) -> exists a, n <= c /\ nth_error es (c - n) = Some (Col a) /\ In a cs.
Proof.
  revert n. induction es as [|e es IH]; simpl; intros n H; [tauto |].
  assert (K : In c (positions es cs (S n)) -> exists a, n <= c /\ nth_error (e :: es) (c - n) = Some (Col a) /\ In a cs).
  { intros Q. destruct (IH _ Q) as (a & L & E & A). exists a. repeat split; auto; [lia |].
    replace (c - n) with (S (c - S n)) by lia. auto. }
  destruct e as [a|f]; auto. destruct (mem a cs) eqn:M; auto. destruct H as [H | H]; auto. subst.
  exists a. rewrite Nat.sub_diag. simpl. repeat split; auto. now apply mem_in.
Qed.
(** ** Shapes, local *)
Lemma lookup_local {X} (m : row -> row -> bool) (B : row -> list row -> list X) L1 L2 R1 R2 :
  (forall l r, In l L1 -> In r R2 -> m l r = false) -> (forall l r, In l L2 -> In r R1 -> m l r = false) ->
  lookup m B (L1 ++ L2) (R1 ++ R2) = lookup m B L1 R1 ++ lookup m B L2 R2.
Proof.
  intros H1 H2. unfold lookup. rewrite flat_map_app. f_equal.
  - apply flat_map_ext_in || (revert H1; induction L1 as [|l L1 IH]; intros H1; simpl; auto). 
    all: try (rewrite filter_app; assert (E : filter (m l) R2 = []) by (clear - H1; induction R2 as [|r R2 IH2]; simpl; auto; rewrite (H1 l r) by (now left); apply IH2; intros; apply H1; auto; now right); rewrite E, app_nil_r, IH; auto; intros; apply H1; auto; now right).
  - revert H2; induction L2 as [|l L2 IH]; intros H2; simpl; auto.
    rewrite filter_app; assert (E : filter (m l) R1 = []) by (clear - H2; induction R1 as [|r R1 IH2]; simpl; auto; rewrite (H2 l r) by (now left); apply IH2; intros; apply H2; auto; now right); rewrite E; simpl; rewrite IH; auto; intros; apply H2; auto; now right.
Qed.
Lemma flat_map_both {X Y} (f g : X -> list Y) xs : Permutation (flat_map (fun x => f x ++ g x) xs) (flat_map f xs ++ flat_map g xs).
Proof.
  induction xs as [|x xs IH]; simpl; auto. rewrite IH, <- !app_assoc. apply Permutation_app_head. apply Permutation_app_swap_app.
Qed.
Lemma inner_local_right m g L R1 R2 : Permutation (@inner row row row m g L (R1 ++ R2)) (inner m g L R1 ++ inner m g L R2).
Proof.
  unfold inner, lookup, inner_block. rewrite <- flat_map_both.
  induction L as [|l L IH]; simpl; auto. rewrite filter_app, map_app, IH. auto.
Qed.
Lemma joined_perm k eqs res wl wr L L' R R' : Permutation L L' -> Permutation R R' ->
  Permutation (joined I k eqs res wl wr L R) (joined I k eqs res wl wr L' R').
Proof.
  intros P Q. destruct k; simpl.
  - apply lookup_perm; auto. intros; now apply inner_perm.
  - apply lookup_perm; auto. intros; now apply left_perm.
  - apply full_perm; auto.
  - apply lookup_perm; auto. intros; now apply semi_perm.
  - apply lookup_perm; auto. intros; now apply anti_perm.
Qed.
Lemma grouped_perm ks a L L' : Permutation L L' -> Permutation (grouped I ks a L) (grouped I ks a L').
Proof. apply by_key_perm; auto. intros. apply group_row_perm; auto. intros. f_equal. now apply agg_perm. Qed.
Lemma windowed_perm part f w L L' : Permutation L L' -> Permutation (windowed I part f w L) (windowed I part f w L').
Proof.
  intros P. apply by_key_perm.
  - intros. destruct (win I f []) as [|r rs] eqn:E; auto. destruct (win_rows I f [] r) as (r0 & v & F & _); [rewrite E; now left | destruct F].
  - intros. now apply win_perm. - now apply Permutation_map.
Qed.
Lemma trunc_perm cols t d L L' : Permutation L L' -> Permutation (trunc I cols t d L) (trunc I cols t d L').
Proof.
  intros P. unfold trunc. apply Permutation_app; [now apply filter_perm |].
  destruct d; apply by_key_perm; try (now apply filter_perm); intros; simpl; auto.
  - rewrite (Permutation_length H). destruct (length l' <=? t); auto.
  - now rewrite firstn_nil.
  - rewrite (sort_perm _ (before_total I) (before_trans I) (before_anti I) l l' H). auto.
Qed.
Lemma h_ok k : h k 0 0 = 0 /\ (forall a b, h k (S a) b <= S (h k a b) /\ h k a b <= S (h k (S a) b))
  /\ (forall a b, h k a (S b) <= S (h k a b) /\ h k a b <= S (h k a (S b))).
Proof.
  destruct k; simpl; unfold h_union_all, h_union, h_intersect_all, h_intersect, h_except_all; repeat split; try lia;
  unfold h_except; destruct b; lia.
Qed.

Lemma in_inner eqs res wl wr L R x : In x (joined I Inner eqs res wl wr L R) ->
  exists l r, In l L /\ In r R /\ matches I eqs res wl l r = true /\ x = glue wl wr l r.
Proof.
  simpl. unfold inner, lookup, inner_block. intros H. apply in_flat_map in H. destruct H as (l & Hl & H).
  apply in_map_iff in H. destruct H as (r & E & H). apply filter_In in H. exists l, r. intuition.
Qed.
Lemma in_left eqs res wl wr L R x : In x (joined I Left eqs res wl wr L R) -> exists l s, In l L /\ x = fit wl l ++ s.
Proof.
  simpl. unfold left, lookup, left_block. intros H. apply in_flat_map in H. destruct H as (l & Hl & H).
  destruct (filter (matches I eqs res wl l) R).
  - destruct H as [H | []]. subst. eauto.
  - apply in_map_iff in H. destruct H as (q & E & H). subst. unfold glue. eauto.
Qed.
Lemma in_semi eqs res wl wr L R x k : k = Semi \/ k = Anti -> In x (joined I k eqs res wl wr L R) -> In x L.
Proof.
  intros [-> | ->]; simpl; unfold semi, anti, lookup, semi_block, anti_block; intros H; apply in_flat_map in H;
    destruct H as (l & Hl & H); destruct (filter (matches I eqs res wl l) R); simpl in H; intuition; subst; auto.
Qed.
Lemma joined_local k eqs res wl wr L1 L2 R1 R2 : k <> Full ->
  (forall l r, In l L1 -> In r R2 -> matches I eqs res wl l r = false) ->
  (forall l r, In l L2 -> In r R1 -> matches I eqs res wl l r = false) ->
  joined I k eqs res wl wr (L1 ++ L2) (R1 ++ R2) = joined I k eqs res wl wr L1 R1 ++ joined I k eqs res wl wr L2 R2.
Proof. intros N H1 H2. destruct k; simpl; try (now apply lookup_local). congruence. Qed.
Lemma joined_left k eqs res wl wr L1 L2 R : k <> Full ->
  joined I k eqs res wl wr (L1 ++ L2) R = joined I k eqs res wl wr L1 R ++ joined I k eqs res wl wr L2 R.
Proof. intros N. destruct k; simpl; try (unfold inner, left, semi, anti, lookup; now rewrite flat_map_app). congruence. Qed.

Lemma on_id_match eqs res wl cs ds l r : on_id eqs cs ds = true -> matches I eqs res wl l r = true ->
  exists a b z, In a cs /\ In b ds /\ at_ a l = Some z /\ at_ b r = Some z.
Proof.
  intros H M. unfold on_id in H. apply existsb_exists in H. destruct H as ([x y] & Hi & H).
  destruct x as [a|]; [| discriminate]. destruct y as [b|]; [| discriminate].
  apply andb_true_iff in H. destruct H as [Ha Hb]. apply mem_in in Ha, Hb.
  unfold matches in M. apply andb_true_iff in M. destruct M as [M _]. rewrite forallb_forall in M. specialize (M _ Hi). simpl in M.
  apply eqv_true in M. destruct M as (z & E & F). exists a, b, z. auto.
Qed.

Lemma apart_match eqs res wl cs ds (L : list row) (R : list row) (b : bool) :
  on_id eqs cs ds = true ->
  (forall c, In c cs -> forall r, In r L -> if b then at_ c r = Some u else at_ c r <> Some u) ->
  (forall c, In c ds -> forall r, In r R -> if b then at_ c r <> Some u else at_ c r = Some u) ->
  forall l r, In l L -> In r R -> matches I eqs res wl l r = false.
Proof.
  intros H HL HR l r Hl Hr. destruct (matches I eqs res wl l r) eqn:M; auto. exfalso.
  destruct (on_id_match eqs res wl cs ds l r H M) as (a & d & z & Ha & Hd & E & F).
  specialize (HL a Ha l Hl). specialize (HR d Hd r Hr). rewrite E in HL. rewrite F in HR. destruct b; congruence.
Qed.

Lemma in_group ks a L x : In x (grouped I ks a L) -> exists r s, In r L /\ x = map (ev I r) ks ++ s.
Proof.
  unfold grouped, group, by_key. intros H. apply in_flat_map in H. destruct H as (k & Hk & H).
  unfold keys in Hk. rewrite nodup_In in Hk. apply in_map_iff in Hk. destruct Hk as (r & E & Hr).
  unfold group_row in H. destruct (block _ _ k L); simpl in H; [tauto |]. destruct H as [H | []]. subst. eauto.
Qed.
Lemma in_window part f w L x : In x (windowed I part f w L) -> exists r v, In r L /\ x = fit w r ++ [v].
Proof.
  unfold windowed, by_key. intros H. apply in_flat_map in H. destruct H as (k & Hk & H).
  apply win_rows in H. destruct H as (r0 & v & Hr & E). unfold block in Hr. apply filter_In in Hr. destruct Hr as [Hr _].
  apply in_map_iff in Hr. destruct Hr as (r & F & Hr). subst. eauto.
Qed.
Lemma in_trunc cols t d L x : In x (trunc I cols t d L) -> In x L.
Proof.
  unfold trunc. rewrite in_app_iff. intros [H | H]; [apply filter_In in H; tauto |].
  assert (K : In x (filter (fun r => negb (has_null cols r)) L)); [| apply filter_In in K; tauto].
  destruct d; unfold drop, keep, by_key in H; apply in_flat_map in H; destruct H as (k & _ & H).
  - destruct (_ <=? t); [| destruct H]. unfold block in H. apply filter_In in H. tauto.
  - apply (firstn_In_ t) in H || idtac.
    assert (F : forall n (l : list row), In x (firstn n l) -> In x l).
    { intros n l Hn. rewrite <- (firstn_skipn n l). apply in_app_iff. auto. }
    apply F in H. clear F.
    assert (G : forall l, In x (sort (before I) l) -> In x l).
    { induction l as [|y l IH]; simpl; auto. assert (Q : forall m, In x (insert (before I) y m) -> y = x \/ In x m).
      { induction m as [|z m IHm]; simpl; [tauto |]. destruct (before I y z); simpl; tauto. }
      intros Hx. apply Q in Hx. tauto. }
    apply G in H. unfold block in H. apply filter_In in H. tauto.
Qed.

(** Keys that hold an id column are never shared between D and U. *)
Lemma keys_apart (key : row -> row) (cs : list nat) (L1 L2 : list row) a :
  (forall r s, key r = key s -> at_ a r = at_ a s) -> In a cs ->
  (forall c, In c cs -> forall r, In r L1 -> at_ c r <> Some u) -> (forall c, In c cs -> forall r, In r L2 -> at_ c r = Some u) ->
  forall k, In k (map key L1) -> In k (map key L2) -> False.
Proof.
  intros K A H1 H2 k I1 I2. apply in_map_iff in I1, I2. destruct I1 as (r & E & Hr). destruct I2 as (s & F & Hs).
  apply (H1 a A r Hr). rewrite (K r s) by congruence. now apply (H2 a A).
Qed.
Lemma rows_apart cs ds (L1 L2 : list row) c : In c cs -> In c ds ->
  (forall c, In c cs -> forall r, In r L1 -> at_ c r <> Some u) -> (forall c, In c ds -> forall r, In r L2 -> at_ c r = Some u) ->
  forall x, In x L1 -> In x L2 -> False.
Proof. intros A B H1 H2 x I1 I2. apply (H1 c A x I1). now apply (H2 c B). Qed.

Lemma has_id_key es cs : has_id es cs = true -> exists a, In a cs /\ forall r s, map (ev I r) es = map (ev I s) es -> at_ a r = at_ a s.
Proof.
  intros H. unfold has_id in H. apply existsb_exists in H. destruct H as (e & He & H). destruct e as [a|]; [| discriminate].
  exists a. split; [now apply mem_in |]. intros r s E. apply in_split in He. destruct He as (p & q & ->).
  rewrite !map_app in E. simpl in E.
  assert (Hl : length (map (ev I r) p) = length (map (ev I s) p)) by now rewrite !map_length.
  apply app_inv_length_eq in E || idtac.
  revert E Hl. generalize (map (ev I r) p) (map (ev I s) p). induction l as [|x l IH]; intros [|y m] E Hl; simpl in *; try lia.
  - congruence. - inversion E; subst. eapply IH; eauto.
Qed.
Lemma positions_has_id es cs n : positions es cs n <> [] -> has_id es cs = true.
Proof.
  revert n. induction es as [|e es IH]; simpl; intros n H; [congruence |]. destruct e as [a|f]; simpl; eauto.
  destruct (mem a cs); simpl; eauto.
Qed.
Lemma some_ids_cons cs f : some_ids cs = Some f -> f = Ids cs /\ exists c, In c cs.
Proof. destruct cs as [|c cs]; simpl; [congruence |]. intros E; inversion E; subst. split; auto. exists c. now left. Qed.

Lemma better_ids a b cs : better a b = Some (Ids cs) -> b = Some (Ids cs).
Proof. destruct a, b as [[| |]|]; simpl; congruence. Qed.
Lemma derive_ids p : forall cs, derive p = Some (Ids cs) -> exists c, In c cs.
Proof.
  induction p as [t | q pins i IH | es i IH | fl n i IH | k eqs res l IHl r IHr | k l IHl r IHr | i IH | ks a i IH
    | a i IH | part w i IH | cols t d i IH | c i IH]; intros cs E; simpl in E.
  - destruct (policy t); inversion E; subst. eexists; now left.
  - eauto.
  - destruct (derive i) as [[| |ds]|]; try discriminate. now apply some_ids_cons in E as [F [c Hc]]; inversion F; subst; eauto.
  - destruct (derive i) as [[| |ds]|]; try discriminate. now apply some_ids_cons in E as [F [c Hc]]; inversion F; subst; eauto.
  - apply better_ids in E. destruct (derive l) as [[| |es]|], (derive r) as [[| |fs]|]; try discriminate;
    try (exfalso; revert E; unfold row_count, by_frequency, added; destruct k;
         repeat match goal with |- context [part ?a ?b ?c] => destruct (part a b c) end; discriminate);
    destruct k; try discriminate;
      try (destruct (on_id eqs es fs); try discriminate);
      try (apply some_ids_cons in E as [F [c Hc]]; inversion F; subst; eauto; fail);
      try (inversion E; subst; eauto; fail).
  - destruct (derive l) as [[| |es]|], (derive r) as [[| |fs]|]; try discriminate;
      try (apply some_ids_cons in E as [F [c Hc]]; inversion F; subst; eauto; fail); destruct k; inversion E; subst; eauto.
  - eauto.
  - destruct (derive i) as [[| |ds]|]; try discriminate. now apply some_ids_cons in E as [F [c Hc]]; inversion F; subst; eauto.
  - destruct (derive i) as [[| |ds]|]; discriminate.
  - destruct (derive i) as [[| |ds]|]; try discriminate. destruct (has_id part (within (width i) ds)) eqn:H; [| discriminate].
    apply has_id_key in H. destruct H as (a & Ha & _). inversion E; subst. eauto.
  - destruct (derive i) as [[| |ds]|]; try discriminate. destruct (existsb _ cols); inversion E; subst; eauto.
  - destruct (derive i) as [[| |ds]|], (most i [c]); try discriminate. destruct (mem c ds); discriminate.
Qed.

Lemma trunc_stable cols t (d : bool) k L L' : near k L L' -> near ((if d then Nat.max 1 t else 2) * k) (trunc I cols t d L) (trunc I cols t d L').
Proof.
  apply near_by_steps; [apply trunc_perm |]. intros x l. unfold trunc.
  assert (M1 : 1 <= if d then Nat.max 1 t else 2) by (destruct d; [apply Nat.le_max_l | lia]).
  cbn [filter]. destruct (has_null cols x); cbn [negb app].
  - now apply near_cons.
  - replace (if d then Nat.max 1 t else 2) with (0 + (if d then Nat.max 1 t else 2)) by auto. apply near_app; [apply near_refl |].
    destruct d.
    + rewrite <- (Nat.mul_1_r (Nat.max 1 t)). apply drop_stable. apply near_cons. lia.
    + rewrite <- (Nat.mul_1_r 2). apply keep_stable; try apply I. apply near_cons. lia.
Qed.

Theorem derive_sound p : neighbours -> promised promise D -> promised promise D' -> forall f, derive p = Some f -> holds p f.
Proof.
  intros N C C'. induction p as [t | q pins i IH | es i IH | fl n i IH | k eqs res l IHl r IHr | k l IHl r IHr | i IH | ks a i IH
    | a i IH | part w i IH | cols t d i IH | c i IH]; intros f E; simpl in E.
  - (* Scan *) specialize (N t). inversion E; subst. destruct (policy t); simpl; auto.
    destruct N as (P & H1 & H2). repeat split; auto; intros c' [<- | []]; auto.
  - (* Filter *) specialize (IH f E). destruct f as [|k|cs]; simpl in *.
    + split; now apply filter_perm. + now apply filter_stable.
    + destruct IH as (P & H1 & H2). repeat split.
      * rewrite <- filter_app. now apply filter_perm.
      * intros c Hc r Hr. apply filter_In in Hr. eapply H1; eauto; tauto.
      * intros c Hc r Hr. apply filter_In in Hr. eapply H2; eauto; tauto.
  - (* Project *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; simpl in *.
    + inversion E; subst; simpl. split; now apply Permutation_map.
    + inversion E; subst; simpl. now apply project_stable.
    + apply some_ids_inv in E. subst. destruct IH as (P & H1 & H2). simpl. repeat split.
      * rewrite <- map_app. now apply Permutation_map.
      * intros c Hc r Hr. apply positions_in in Hc. destruct Hc as (a & _ & Ha & Hc). rewrite Nat.sub_0_r in Ha.
        apply in_map_iff in Hr. destruct Hr as (r0 & <- & Hr). pose proof (at_map I es r0 c a Ha []) as Q. rewrite app_nil_r in Q.
        rewrite Q. now apply H1.
      * intros c Hc r Hr. apply positions_in in Hc. destruct Hc as (a & _ & Ha & Hc). rewrite Nat.sub_0_r in Ha.
        apply in_map_iff in Hr. destruct Hr as (r0 & <- & Hr). pose proof (at_map I es r0 c a Ha []) as Q. rewrite app_nil_r in Q.
        rewrite Q. now apply H2.
  - (* Unnest *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; simpl in *.
    + inversion E; subst; simpl. split; now apply Permutation_flat_map.
    + inversion E; subst; simpl. apply flat_map_stable; auto. intros x. rewrite map_length, firstn_length. lia.
    + apply some_ids_inv in E. subst. destruct IH as (P & H1 & H2). simpl. unfold unnested. repeat split.
      * rewrite <- flat_map_app. now apply Permutation_flat_map.
      * intros c Hc r Hr. apply within_in in Hc. apply in_flat_map in Hr. destruct Hr as (r0 & Hr & Hx).
        apply in_map_iff in Hx. destruct Hx as (v & <- & _). rewrite at_left by tauto. apply H1; tauto.
      * intros c Hc r Hr. apply within_in in Hc. apply in_flat_map in Hr. destruct Hr as (r0 & Hr & Hx).
        apply in_map_iff in Hx. destruct Hx as (v & <- & _). rewrite at_left by tauto. apply H2; tauto.
  - (* Join *)
    set (ml := most l (bare (map fst eqs))) in *. set (mr := most r (bare (map snd eqs))) in *.
    assert (Ca : forall z y, ml = Some y -> seekers (matches I eqs res (width l)) z (eval I D l) <= y).
    { intros z y H. etransitivity; [now apply seekers_most |]. apply (most_sound tw aw promise I D C l). now rewrite bare_left. }
    assert (Cb : forall z y, mr = Some y -> partners (matches I eqs res (width l)) z (eval I D' r) <= y).
    { intros z y H. etransitivity; [now apply partners_most |]. apply (most_sound tw aw promise I D' C' r). now rewrite bare_right. }
    revert E. match goal with |- better _ ?b = _ -> _ => set (derived := b) end. intros E.
    assert (K : forall g, derived = Some g -> holds (Join k eqs res l r) g).
    2:{ destruct (itself policy promise k eqs l r) as [n|] eqn:T; [| now apply K].
      assert (H : near n (eval I D (Join k eqs res l r)) (eval I D' (Join k eqs res l r))) by (eapply itself_sound; eauto).
      destruct derived as [[|y|ds]|]; simpl in E; inversion E; subst; try (apply K; auto; fail); auto.
      destruct (Nat.min_spec n y) as [[_ ->] | [_ ->]]; [auto | now apply K]. }
    unfold derived. clear E. clear derived. clear f. intros f E.
    destruct (derive l) as [fl|]; [| discriminate]. destruct (derive r) as [fr|].
    2:{ destruct fl; discriminate. }
    specialize (IHl fl eq_refl). specialize (IHr fr eq_refl).
    assert (freq : forall j s, near j (eval I D l) (eval I D' l) -> near s (eval I D r) (eval I D' r) ->
      by_frequency k j s ml mr = Some f -> holds (Join k eqs res l r) f).
    { intros j s Hj Hs Q.
      assert (La : forall x n, part s x ml = Some n -> exists y, n = s * x y /\ forall z, seekers (matches I eqs res (width l)) z (eval I D l) <= y).
      { intros x n H. destruct ml as [y|]; simpl in H.
        - inversion H; subst. exists y. split; auto.
        - destruct (Nat.eqb_spec s 0); [| discriminate]. inversion H; subst. exists (length (eval I D l)). split; auto.
          intros z. apply filter_most. }
      assert (Lb : forall x n, part j x mr = Some n -> exists y, n = j * x y /\ forall z, partners (matches I eqs res (width l)) z (eval I D' r) <= y).
      { intros x n H. destruct mr as [y|]; simpl in H.
        - inversion H; subst. exists y. split; auto.
        - destruct (Nat.eqb_spec j 0); [| discriminate]. inversion H; subst. exists (length (eval I D' r)). split; auto.
          intros z. apply filter_most. }
      unfold by_frequency, added in Q. destruct k.
      - destruct (part j (fun x => x) mr) as [nb|] eqn:Eb; [| discriminate]. destruct (part s (fun x => x) ml) as [na|] eqn:Ea; [| discriminate].
        destruct (La _ _ Ea) as (fa & -> & Ha). destruct (Lb _ _ Eb) as (fb & -> & Hb). match type of Q with Some ?x = Some f => replace f with x by congruence end. cbn [Plan.holds Plan.eval joined]. now apply inner_stable.
      - destruct (part j (Nat.max 1) mr) as [nb|] eqn:Eb; [| discriminate]. destruct (part s (fun x => 2 * x) ml) as [na|] eqn:Ea; [| discriminate].
        destruct (La _ _ Ea) as (fa & -> & Ha). destruct (Lb _ _ Eb) as (fb & -> & Hb). match type of Q with Some ?x = Some f => replace f with x by congruence end. cbn [Plan.holds Plan.eval joined].
        replace (s * (2 * fa)) with (2 * s * fa) by lia. now apply left_stable.
      - destruct (part j (fun x => Nat.max 1 (2 * x)) mr) as [nb|] eqn:Eb; [| discriminate]. destruct (part s (fun x => Nat.max 1 (2 * x)) ml) as [na|] eqn:Ea; [| discriminate].
        destruct (La _ _ Ea) as (fa & -> & Ha). destruct (Lb _ _ Eb) as (fb & -> & Hb). match type of Q with Some ?x = Some f => replace f with x by congruence end. cbn [Plan.holds Plan.eval joined]. now apply full_stable.
      - destruct (part s (fun x => x) ml) as [na|] eqn:Ea; [| discriminate].
        destruct (La _ _ Ea) as (fa & -> & Ha). match type of Q with Some ?x = Some f => replace f with x by congruence end. cbn [Plan.holds Plan.eval joined]. now apply semi_stable.
      - destruct (part s (fun x => x) ml) as [na|] eqn:Ea; [| discriminate].
        destruct (La _ _ Ea) as (fa & -> & Ha). match type of Q with Some ?x = Some f => replace f with x by congruence end. cbn [Plan.holds Plan.eval joined]. now apply anti_stable. }
    destruct fl as [|j|cs], fr as [|s|ds]; try discriminate.
    + (* Same, Same *) inversion E; subst. destruct IHl, IHr. simpl. split; now apply joined_perm.
    + (* Same, Rows *) simpl in E. apply (freq 0 s); auto. apply near_of_perm. symmetry. apply IHl.
    + (* Same, Ids *) destruct k; try discriminate. apply some_ids_inv in E. subst.
      destruct IHl as [P Q]. destruct IHr as (P2 & H1 & H2). simpl. repeat split.
      * etransitivity; [apply (joined_perm Inner); [exact P | exact P2] |].
        etransitivity; [apply inner_local_right |]. apply Permutation_app_head.
        apply (joined_perm Inner); [symmetry; exact Q | reflexivity].
      * intros c Hc x Hx. apply in_map_iff in Hc. destruct Hc as (d & <- & Hd). apply within_in in Hd.
        apply (in_inner eqs res) in Hx. destruct Hx as (l0 & r0 & _ & Hr & _ & ->). unfold glue. rewrite at_right, at_fit by tauto.
        apply H1; tauto.
      * intros c Hc x Hx. apply in_map_iff in Hc. destruct Hc as (d & <- & Hd). apply within_in in Hd.
        apply (in_inner eqs res) in Hx. destruct Hx as (l0 & r0 & _ & Hr & _ & ->). unfold glue. rewrite at_right, at_fit by tauto.
        apply H2; tauto.
    + (* Rows, Same *) simpl in E. apply (freq j 0); auto. apply near_of_perm. symmetry. apply IHr.
    + (* Rows, Rows *) simpl in E. now apply (freq j s).
    + (* Ids, Same *) destruct IHl as (P & H1 & H2). destruct IHr as [P2 Q2].
      assert (Hp : k <> Full -> Permutation (joined I k eqs res (width l) (width r) (eval I D' l) (eval I D' r))
        (joined I k eqs res (width l) (width r) (eval I D l) (eval I D r) ++ joined I k eqs res (width l) (width r) (eval I U l) (eval I U r))).
      { intros Nk. rewrite (joined_perm k eqs res _ _ _ _ _ _ P P2), joined_left by auto. apply Permutation_app_head.
        apply joined_perm; [reflexivity | now symmetry]. }
      destruct k; try discriminate.
      * apply some_ids_inv in E. subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply within_in in Hc;
          apply in_inner in Hx; destruct Hx as (l0 & r0 & Hl & _ & _ & ->); unfold glue; rewrite at_left by tauto; [apply H1 | apply H2]; tauto.
      * apply some_ids_inv in E. subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply within_in in Hc;
          apply in_left in Hx; destruct Hx as (l0 & s0 & Hl & ->); rewrite at_left by tauto; [apply H1 | apply H2]; tauto.
      * inversion E; subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply in_semi in Hx; auto.
      * inversion E; subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply in_semi in Hx; auto.
    + (* Ids, Ids *) destruct IHl as (P & H1 & H2). destruct IHr as (P2 & G1 & G2).
      destruct (on_id eqs cs ds) eqn:O; [| discriminate].
      assert (Hp : k <> Full -> Permutation (joined I k eqs res (width l) (width r) (eval I D' l) (eval I D' r))
        (joined I k eqs res (width l) (width r) (eval I D l) (eval I D r) ++ joined I k eqs res (width l) (width r) (eval I U l) (eval I U r))).
      { intros Nk. rewrite (joined_perm k eqs res _ _ _ _ _ _ P P2). rewrite joined_local; auto.
        - apply (apart_match eqs res _ cs ds _ _ false); auto. - apply (apart_match eqs res _ cs ds _ _ true); auto. }
      destruct k; try discriminate.
      * apply some_ids_inv in E. subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx;
          apply in_inner in Hx; destruct Hx as (l0 & r0 & Hl & Hr & _ & ->); unfold glue;
          apply in_app_or in Hc; destruct Hc as [Hc | Hc];
          [ apply within_in in Hc; rewrite at_left by tauto; apply H1; tauto
          | apply in_map_iff in Hc; destruct Hc as (d & <- & Hd); apply within_in in Hd; rewrite at_right, at_fit by tauto; apply G1; tauto
          | apply within_in in Hc; rewrite at_left by tauto; apply H2; tauto
          | apply in_map_iff in Hc; destruct Hc as (d & <- & Hd); apply within_in in Hd; rewrite at_right, at_fit by tauto; apply G2; tauto ].
      * apply some_ids_inv in E. subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply within_in in Hc;
          apply in_left in Hx; destruct Hx as (l0 & s0 & Hl & ->); rewrite at_left by tauto; [apply H1 | apply H2]; tauto.
      * inversion E; subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply in_semi in Hx; auto.
      * inversion E; subst. cbn [Plan.holds Plan.eval]. split; [apply Hp; congruence |]. split; intros c Hc x Hx; apply in_semi in Hx; auto.
  - (* SetOp *)  destruct (h_ok k) as (Z0 & Zl & Zr).
    destruct (derive l) as [fl|] eqn:Dl; [| discriminate]. destruct (derive r) as [fr|] eqn:Dr.
    2:{ destruct fl; discriminate. }
    specialize (IHl fl eq_refl). specialize (IHr fr eq_refl).
    destruct fl as [|j|cs], fr as [|s|ds]; try discriminate.
    + inversion E; subst. destruct IHl, IHr. simpl. split; now apply setop_perm.
    + simpl in E. inversion E; subst. cbn [Plan.holds Plan.eval]. apply (setop_stable row_eq (h k) Z0 Zl Zr 0 s); auto. apply near_of_perm. symmetry. apply IHl.
    + (* Same, Ids: INTERSECT *) destruct (derive_ids r ds Dr) as [c0 Hc0]. destruct IHl as [P Q]. destruct IHr as (P2 & G1 & G2).
      assert (Hk : (k = IntersectAll \/ k = Intersect) /\ f = Ids ds) by (destruct k; inversion E; auto). destruct Hk as [Hk ->].
      assert (Hz : forall a, h k a 0 = 0) by (destruct Hk; subst; simpl; intros; unfold h_intersect_all, h_intersect; lia).
      cbn [Plan.holds Plan.eval]. split; [| split].
      * etransitivity; [apply setop_perm; [exact Z0 | exact P | exact P2] |].
        etransitivity; [apply setop_local_right; [exact Z0 | exact Hz | apply (rows_apart ds ds _ _ c0 Hc0 Hc0 G1 G2)] |].
        apply Permutation_app_head. apply setop_perm; [exact Z0 | now symmetry | reflexivity].
      * intros c Hc x Hx. apply setop_in_right in Hx; auto.
      * intros c Hc x Hx. apply setop_in_right in Hx; auto.
    + simpl in E. inversion E; subst. cbn [Plan.holds Plan.eval]. apply (setop_stable row_eq (h k) Z0 Zl Zr j 0); auto. apply near_of_perm. symmetry. apply IHr.
    + simpl in E. inversion E; subst. cbn [Plan.holds Plan.eval]. now apply setop_stable.
    + (* Ids, Same *) destruct (derive_ids l cs Dl) as [c0 Hc0]. destruct IHl as (P & H1 & H2). destruct IHr as [P2 Q2].
      assert (Hk : k <> UnionAll /\ k <> Union /\ f = Ids cs) by (destruct k; inversion E; repeat split; congruence).
      destruct Hk as (K1 & K2 & ->).
      assert (Hz : forall b, h k 0 b = 0) by (destruct k; simpl; intros; unfold h_intersect_all, h_intersect, h_except_all, h_except; try congruence; lia).
      cbn [Plan.holds Plan.eval]. split; [| split].
      * etransitivity; [apply setop_perm; [exact Z0 | exact P | exact P2] |].
        etransitivity; [apply setop_local_left; [exact Z0 | exact Hz | apply (rows_apart cs cs _ _ c0 Hc0 Hc0 H1 H2)] |].
        apply Permutation_app_head. apply setop_perm; [exact Z0 | reflexivity | now symmetry].
      * intros c Hc x Hx. apply setop_in_left in Hx; auto.
      * intros c Hc x Hx. apply setop_in_left in Hx; auto.
    + (* Ids, Ids *) destruct IHl as (P & H1 & H2). destruct IHr as (P2 & G1 & G2).
      apply some_ids_cons in E. destruct E as [-> [c0 Hc0]].
      assert (Hin : forall c, In c (filter (fun c => mem c ds) cs) -> In c cs /\ In c ds).
      { intros c Hc. apply filter_In in Hc. destruct Hc as [Hc M]. split; auto. now apply mem_in. }
      destruct (Hin c0 Hc0) as [A0 B0]. cbn [Plan.holds Plan.eval]. split; [| split].
      * etransitivity; [apply setop_perm; [exact Z0 | exact P | exact P2] |]. apply setop_disjoint; [exact Z0 |].
        intros x X1 X2. assert (N1 : at_ c0 x <> Some u) by (apply in_app_or in X1; destruct X1; auto).
        assert (N2 : at_ c0 x = Some u) by (apply in_app_or in X2; destruct X2; auto). contradiction.
      * intros c Hc x Hx. destruct (Hin c Hc). apply setop_in in Hx; auto. destruct Hx; auto.
      * intros c Hc x Hx. destruct (Hin c Hc). apply setop_in in Hx; auto. destruct Hx; auto.
  - (* Distinct *) specialize (IH f E). destruct f as [|k|cs]; cbn [Plan.holds Plan.eval] in *.
    + split; apply (distinct_perm row_eq); apply IH. + now apply (distinct_stable row_eq).
    + destruct (derive_ids i cs E) as [c0 Hc0]. destruct IH as (P & H1 & H2). split; [| split].
      * etransitivity; [apply (distinct_perm row_eq); exact P |]. apply nodup_app. apply (rows_apart cs cs _ _ c0 Hc0 Hc0 H1 H2).
      * intros c Hc x Hx. rewrite nodup_In in Hx. auto. * intros c Hc x Hx. rewrite nodup_In in Hx. auto.
  - (* Group *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; cbn [Plan.holds Plan.eval] in *.
    + inversion E; subst. cbn [Plan.holds Plan.eval]. split; apply grouped_perm; apply IH.
    + inversion E; subst. cbn [Plan.holds Plan.eval]. apply group_stable; auto. intros. f_equal. now apply agg_perm.
    + apply some_ids_cons in E. destruct E as [-> [c0 Hc0]]. destruct IH as (P & H1 & H2). cbn [Plan.holds Plan.eval]. split; [| split].
      * etransitivity; [apply grouped_perm; exact P |].
        destruct (has_id_key ks cs) as (a0 & Ha & K). { apply (positions_has_id ks cs 0). intros Q. rewrite Q in Hc0. destruct Hc0. }
        apply by_key_disjoint; auto. apply (keys_apart (fun r => map (ev I r) ks) cs _ _ a0); auto.
      * intros c Hc x Hx. apply positions_in in Hc. destruct Hc as (b & _ & Hb & Hc). rewrite Nat.sub_0_r in Hb.
        apply in_group in Hx. destruct Hx as (r0 & s0 & Hr & ->). rewrite (at_map I ks r0 c b Hb). auto.
      * intros c Hc x Hx. apply positions_in in Hc. destruct Hc as (b & _ & Hb & Hc). rewrite Nat.sub_0_r in Hb.
        apply in_group in Hx. destruct Hx as (r0 & s0 & Hr & ->). rewrite (at_map I ks r0 c b Hb). auto.
  - (* Total *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; try discriminate; inversion E; subst; cbn [Plan.holds Plan.eval] in *.
    + split; rewrite (agg_perm I a _ (eval I D i)); auto; apply IH.
    + destruct k as [|k].
      * destruct IH as (c & r & b & P & Q & L). destruct r, b; simpl in L; try lia. rewrite app_nil_r in *.
        rewrite (agg_perm I a _ _ P), (agg_perm I a _ _ Q). apply near_refl.
      * apply near_weaken with 2; [destruct k; simpl; lia |]. apply near_length. simpl. lia.
  - (* Window *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; cbn [Plan.holds Plan.eval] in *; try discriminate.
    + inversion E; subst. cbn [Plan.holds Plan.eval]. split; apply windowed_perm; apply IH.
    + destruct (has_id part (within (width i) cs)) eqn:Hp; [| discriminate]. inversion E; subst. cbn [Plan.holds Plan.eval].
      destruct IH as (P & H1 & H2). destruct (has_id_key _ _ Hp) as (a & Ha & K). split; [| split].
      * etransitivity; [apply windowed_perm; exact P |]. unfold windowed. rewrite map_app. apply by_key_disjoint.
        { intros _. destruct (win I w []) as [|r rs] eqn:W; auto. destruct (win_rows I w [] r) as (r0 & v & F & _); [rewrite W; now left | destruct F]. }
        apply (keys_apart (fun r => map (ev I r) part) (within (width i) cs) _ _ a); auto;
          intros c Hc x Hx; apply in_map_iff in Hx; destruct Hx as (y & <- & Hy); apply within_in in Hc; rewrite at_fit by tauto; [apply H1 | apply H2]; tauto.
      * intros c Hc x Hx. apply in_window in Hx. destruct Hx as (r0 & v & Hr & ->). apply within_in in Hc. rewrite at_left by tauto. apply H1; tauto.
      * intros c Hc x Hx. apply in_window in Hx. destruct Hx as (r0 & v & Hr & ->). apply within_in in Hc. rewrite at_left by tauto. apply H2; tauto.
  - (* Truncate *) destruct (derive i) as [g|]; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; cbn [Plan.holds Plan.eval] in *.
    + inversion E; subst. cbn [Plan.holds Plan.eval]. split; apply trunc_perm; apply IH.
    + inversion E; subst. cbn [Plan.holds Plan.eval]. pose proof (trunc_stable cols t d k _ _ IH). destruct d; auto.
    + destruct (existsb (fun c => mem c cs) cols) eqn:Hp; [| discriminate]. inversion E; subst. cbn [Plan.holds Plan.eval].
      destruct IH as (P & H1 & H2). apply existsb_exists in Hp. destruct Hp as (a & Ha & M). apply mem_in in M. split; [| split].
      * etransitivity; [apply trunc_perm; exact P |]. unfold trunc. rewrite !filter_app.
        assert (F : forall G : row -> list row -> list row, (forall k, G k [] = []) -> Permutation
          (by_key row_eq (of_cols cols) G (filter (fun r => negb (has_null cols r)) (eval I D i) ++ filter (fun r => negb (has_null cols r)) (eval I U i)))
          (by_key row_eq (of_cols cols) G (filter (fun r => negb (has_null cols r)) (eval I D i)) ++ by_key row_eq (of_cols cols) G (filter (fun r => negb (has_null cols r)) (eval I U i)))).
        { intros G Gn. apply by_key_disjoint; auto. apply (keys_apart (of_cols cols) cs _ _ a); [apply of_cols_key; auto | auto | |];
            intros c Hc x Hx; apply filter_In in Hx; [apply (H1 c) | apply (H2 c)]; tauto. }
        rewrite <- !app_assoc. apply Permutation_app_head.
        destruct d; unfold drop, keep; rewrite F by (intros; simpl; now rewrite ?firstn_nil); apply Permutation_app_swap_app.
      * intros c Hc x Hx. apply in_trunc in Hx. auto. * intros c Hc x Hx. apply in_trunc in Hx. auto.
  - (* ByRows *) destruct (derive i) as [g|] eqn:Di; [| discriminate]. specialize (IH g eq_refl).
    destruct g as [|k|cs]; try discriminate. destruct (most i [c]) as [n|] eqn:F0; [| discriminate]. destruct (mem c cs) eqn:M; [| discriminate].
    inversion E; subst. cbn [Plan.holds Plan.eval] in *. apply mem_in in M. destruct IH as (P & H1 & H2).
    exists (eval I D i), [], (eval I U i). rewrite app_nil_r. repeat split; auto. simpl.
    pose proof (most_sound tw aw promise I D' C' i [(c, u)] n F0) as Cf.
    rewrite (Permutation_length (filter_perm (agrees [(c, u)]) _ _ P)), filter_app, app_length in Cf.
    assert (F : filter (agrees [(c, u)]) (eval I U i) = eval I U i).
    { pose proof (H2 c M) as Hu. clear - Hu. revert Hu. induction (eval I U i) as [|x l IHx]; intros Hu; simpl; auto.
      rewrite (Hu x) by now left. simpl. rewrite Z.eqb_refl. simpl. f_equal. apply IHx. intros; apply Hu; now right. }
    rewrite F in Cf. lia.
Qed.
End Sound.
